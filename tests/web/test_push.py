"""Pushes in a browser whose tabs are closed: the notification, its click, its buttons; and the settings of them.

No push service can be reached here. The browser is handed what the gateway pushed to a push service on this machine,
as its own service would hand it over, and its page subscribes there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, Worker, expect

from tests.e2e.gateway import GatewayProcess
from tests.notify.push_service import PushService, push_service
from tests.web.conftest import SETTINGS, settled
from tests.web.user import DESKTOP, User

BROWSER = DESKTOP
"""The headless shell shows no notifications."""
PUSH = "\n[notify.push]\nallow_private = true\n"
SUBSCRIBES = """given => {
    const known = 'holdfast.test.subscription'
    const subscription = () => ({
        endpoint: given.endpoint,
        options: { applicationServerKey: Uint8Array.from(
            atob(localStorage[known].replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0)).buffer },
        toJSON: () => given,
        unsubscribe: async () => { delete localStorage[known]; return true },
    })
    PushManager.prototype.getSubscription = async () => localStorage[known] ? subscription() : null
    PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
        if (!userVisibleOnly) throw new Error('not visible')
        localStorage[known] = applicationServerKey
        return subscription()
    }
}"""
"""A browser that subscribes at our push service."""
RECORDED = """(() => {
    const show = registration.showNotification.bind(registration)
    const { close } = Notification.prototype
    const others = (tag) => self.shown.filter((one) => !tag || one.tag !== tag)
    self.shown = []
    registration.showNotification = async (title, options) => {
        await show(title, options)
        const { body, tag = '', actions = [], data } = options
        const buttons = actions.map((button) => button.title)
        self.shown = [...others(tag), { title, body, tag, buttons, settled: Boolean(data.settled), to: data.to }]
    }
    Notification.prototype.close = function () {
        self.shown = others(this.tag)
        return close.call(this)
    }
})()"""
"""The worker notes what it shows. Chromium forgets a notification that is about to be shown when it is asked
(`getNotifications`) what it shows, so nobody here asks before it is."""
PRESSED = """([tag, action]) => registration.getNotifications({ tag }).then(([notification]) => new Promise((done) => {
    const event = new NotificationEvent('notificationclick', { notification, action })
    event.waitUntil = (work) => work.then(() => done('done'), (error) => done(String(error)))
    self.dispatchEvent(event)
}))"""
OPENS = "() => { self.opened = []; clients.openWindow = async (to) => { self.opened.push(to) } }"
"""Only a real click may open a window, and a test cannot click there: it notes what would be opened."""


class Phone:
    """A browser profile that takes pushes."""

    def __init__(self, user: User, service: PushService) -> None:
        self.user, self.service = user, service
        self.subscription = service.subscribe()
        self._delivered = 0
        user.context.grant_permissions(["notifications"], origin=user.gateway.url)
        user.context.add_init_script(f"({SUBSCRIBES})({json.dumps(self.subscription.json)})")

    @property
    def page(self) -> Page:
        return self.user.page

    def turn_on(self, *rules: str) -> None:
        """In the settings, as a person does; `rules` are changed there. It need not wait until nobody looks."""
        self.user.open("/settings/notifications")
        box = self.page.get_by_role("checkbox", name="Notify me on this device")
        box.click()
        expect(box).to_be_checked()
        expect(self.page.get_by_role("button", name="Send a test", exact=True)).to_be_visible()
        for rule in ("Only when nobody has looked", *rules):
            box = self.page.get_by_role("checkbox", name=rule)
            checked = box.is_checked()
            box.click()
            expect(box).to_be_checked(checked=not checked)

    def leave(self) -> Worker:
        """Close every page of the gateway; a blank one is the browser."""
        self.page.evaluate("navigator.serviceWorker.ready")
        session = self.user.context.new_cdp_session(self.page)
        found: list[dict[str, Any]] = []
        session.on("ServiceWorker.workerRegistrationUpdated", lambda event: found.extend(event["registrations"]))
        session.send("ServiceWorker.enable")
        self.user.until(lambda: bool(found), "the registration of the worker")
        self._registration = found[-1]["registrationId"]
        blank = self.user.context.new_page()
        blank.goto("about:blank")
        self.page.close()
        self.user.page = blank
        self._browser: CDPSession = self.user.context.new_cdp_session(blank)
        self._browser.send("ServiceWorker.enable")
        self.record()
        return self.worker

    @property
    def worker(self) -> Worker:
        return next(one for one in self.user.context.service_workers if one.url.endswith("/sw.js"))

    def record(self) -> None:
        """From now on it is noted what is shown."""
        self.worker.evaluate(RECORDED)

    def until_pushed(self, count: int) -> None:
        self.user.until(lambda: len(self.service.pushed) >= count, f"{count} pushes")

    def deliver(self, message: Any = None) -> None:
        """Hand the browser what was pushed since the last time, or something else."""
        messages = [message]
        if message is None:
            messages = self.service.messages[self._delivered :]
            self._delivered += len(messages)  # the next one may be there already
        for one in messages:
            data = one if isinstance(one, str) else json.dumps(one)
            given = {"origin": self.user.gateway.url, "registrationId": self._registration, "data": data}
            self._browser.send("ServiceWorker.deliverPushMessage", given)

    def shown(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.worker.evaluate("self.shown")
        return found

    def until_shown(self, **expected: Any) -> dict[str, Any]:
        """The one notification that is shown, when it has these values."""

        def fits() -> bool:
            found = self.shown()
            return len(found) == 1 and found[0] == found[0] | expected

        self.user.until(fits, f"{expected} is shown")
        return self.shown()[0]

    def press(self, tag: str, button: str = "") -> None:
        """A button of a notification by its number, or the notification itself."""
        assert self.worker.evaluate(PRESSED, [tag, button]) == "done"


@pytest.fixture
def service() -> Iterator[PushService]:
    with push_service() as found:
        yield found
        assert found.refused == []


@pytest.fixture
def gateway(tmp_path: Path, browser: Browser) -> Iterator[GatewayProcess]:
    home = settled(tmp_path / "home")
    (home / "config.toml").write_text(SETTINGS + PUSH)
    with GatewayProcess(home) as process:
        yield process.start()


@pytest.fixture
def phone(installed: User, service: PushService) -> Phone:
    return Phone(installed, service)


def ask(phone: Phone, text: str = "sh echo waits") -> str:
    body = {"text": text, "profile": "careful"}
    return str(phone.user.gateway.command("POST", "/v1/sessions", body)["session"])


def answers(phone: Phone, session: str) -> list[str]:
    return [
        record["event"]["answer"]
        for record in phone.user.gateway.events(session)
        if record["event"]["kind"] == "WaitAnswered"
    ]


def test_a_button_answers_an_approval_while_every_tab_is_closed(phone: Phone) -> None:
    phone.turn_on("Say more than the title")
    phone.leave()
    session = ask(phone)
    phone.until_pushed(1)
    phone.deliver()
    shown = phone.until_shown(tag=f"wait/{session}", buttons=["Allow once", "Refuse"])
    assert "echo waits" in shown["body"]
    phone.press(shown["tag"], "0")
    assert answers(phone, session) == ["allow"]
    phone.user.gateway.until_event(session, "TurnFinished")
    phone.until_pushed(2)
    phone.deliver()
    phone.deliver(phone.service.messages[0])  # once more, after a crash of the gateway
    phone.user.until(lambda: len(phone.service.messages) >= 3, "that it is done is told")
    phone.deliver()
    phone.until_shown(tag=f"turn/{session}")


def test_what_was_answered_elsewhere_says_so(phone: Phone) -> None:
    phone.turn_on("Say more than the title")
    phone.leave()
    session = ask(phone)
    phone.until_pushed(1)
    phone.deliver()
    tag = f"wait/{session}"
    phone.until_shown(tag=tag)
    wait = phone.service.messages[0]["wait"]
    phone.user.gateway.command("POST", "/v1/answers", {"wait": wait, "answer": "deny"})
    phone.press(tag, "0")
    shown = phone.until_shown(tag=tag, buttons=[])
    assert "answered" in shown["body"]
    assert answers(phone, session) == ["deny"]
    phone.until_pushed(2)
    settled_push = next(one for one in phone.service.messages if one["kind"] == "settled")
    phone.deliver(settled_push)
    assert phone.until_shown(tag=tag, settled=True)["body"] == "answered by api: deny"


def test_a_title_alone_can_be_refused_and_not_allowed(phone: Phone) -> None:
    phone.turn_on()
    phone.leave()
    session = ask(phone)
    phone.until_pushed(1)
    phone.deliver()
    shown = phone.until_shown(tag=f"wait/{session}", buttons=["Refuse"])
    assert shown["body"] == "asks for an approval"
    phone.press(shown["tag"], "0")
    assert answers(phone, session) == ["deny"]


def test_a_click_brings_the_page_that_is_open_to_the_place(phone: Phone) -> None:
    phone.turn_on()
    worker = phone.leave()
    session = ask(phone)
    phone.until_pushed(1)
    phone.deliver()
    phone.until_shown(tag=f"wait/{session}")
    phone.user.reopen("/tasks")
    expect(phone.page.locator("[data-connection]")).to_have_text("Live")
    worker = phone.worker
    assert worker.evaluate(PRESSED, [f"wait/{session}", ""]) == "done"
    phone.page.wait_for_url(f"**/s/{session}")


def test_bad_pushes_show_something_and_break_nothing(phone: Phone) -> None:
    phone.turn_on()
    phone.leave()
    phone.deliver("no json at all")
    phone.user.until(lambda: [one["title"] for one in phone.shown()] == ["Holdfast"], "something is shown")
    phone.deliver({"title": "Elsewhere", "text": "x", "matter": "m", "id": "1", "link": "https://evil.example/"})
    phone.user.until(lambda: len(phone.shown()) == 2, "it is shown")
    phone.worker.evaluate(OPENS)
    phone.press("m")
    assert phone.worker.evaluate("self.opened") == ["/"], "only places of ours are opened"


def test_a_browser_that_ended_its_subscription_subscribes_again(phone: Phone) -> None:
    phone.turn_on()
    phone.leave()
    again = phone.service.subscribe()
    phone.worker.evaluate(
        "given => { PushManager.prototype.subscribe = async () => ({ toJSON: () => given }) }", again.json
    )
    phone.worker.evaluate("""() => new Promise((done) => {
        const event = new ExtendableEvent('pushsubscriptionchange')
        event.waitUntil = (work) => work.then(done, done)
        self.dispatchEvent(event)
    })""")
    ask(phone)
    phone.until_pushed(1)
    assert phone.service.pushed[-1].subscription == "s1"


# --- the settings -----------------------------------------------------------------------------------


def test_this_device_is_told_by_pushes_and_not_by_its_pages_as_well(phone: Phone) -> None:
    phone.turn_on()
    page = phone.page
    page.get_by_role("button", name="Send a test", exact=True).click()
    expect(page.locator("[data-toast]")).to_contain_text("The test was sent")
    assert phone.service.messages[0]["kind"] == "test"
    box = page.get_by_role("checkbox", name="A turn, a task or a card is done")
    box.click()
    expect(box).not_to_be_checked()
    (listed,) = phone.user.gateway.get("/v1/notify")["destinations"]
    assert "done" not in listed["on"]
    phone.user.context.add_init_script(
        "Object.defineProperty(Document.prototype, 'visibilityState', { get: () => 'hidden' })"
    )
    phone.user.open("/home")
    expect(page.locator("[data-connection]")).to_have_text("Live")
    phone.record()
    ask(phone)
    expect(page.locator("[data-toast]")).to_contain_text("A session waits for you")
    page.wait_for_timeout(700)  # longer than the worker waits for other tabs
    assert phone.shown() == [], "the push tells it"
    phone.user.open("/settings/notifications")
    page.get_by_role("checkbox", name="Notify me on this device").click()
    expect(page.get_by_role("button", name="Send a test", exact=True)).to_have_count(0)
    phone.user.until(lambda: phone.user.gateway.get("/v1/notify")["destinations"] == [], "it gets no pushes any more")


def test_a_subscription_that_has_ended_is_renewed_by_the_next_page(phone: Phone) -> None:
    phone.turn_on()
    phone.service.answer = (410, {})
    phone.page.get_by_role("button", name="Send a test", exact=True).click()
    expect(phone.page.locator("[data-toast]")).to_contain_text("The test did not reach this device")
    (listed,) = phone.user.gateway.get("/v1/notify")["destinations"]
    assert listed["ended"]
    phone.service.answer = (201, {})
    phone.user.open("/home")
    phone.user.until(lambda: not phone.user.gateway.get("/v1/notify")["destinations"][0]["ended"], "it is renewed")


def test_without_a_push_service_the_pages_tell_and_the_settings_say_why(installed: User) -> None:
    installed.context.grant_permissions(["notifications"], origin=installed.gateway.url)
    installed.open("/settings/notifications")
    installed.page.get_by_role("checkbox").click()
    expect(installed.page.get_by_role("region", name="This device")).to_contain_text(
        "Only while a page of Holdfast is open."
    )
    expect(installed.page.get_by_role("region", name="This device")).to_contain_text("Registration failed")
    assert installed.gateway.get("/v1/notify")["destinations"] == []


@pytest.mark.parametrize(
    ("script", "state", "said"),
    [
        ("Object.defineProperty(window, 'isSecureContext', { value: false })", "insecure", "https"),
        ("delete window.Notification", "unsupported", "cannot show notifications"),
        (
            "delete window.Notification; Object.defineProperty(navigator, 'userAgent', { value: 'iPhone' })",
            "home-screen",
            "Add to Home Screen",
        ),
        ("Object.defineProperty(Notification, 'permission', { value: 'denied' })", "blocked", "Allow them"),
    ],
)
def test_where_it_cannot_be_turned_on_it_says_what_to_do(user: User, script: str, state: str, said: str) -> None:
    user.context.add_init_script(script)
    user.open("/settings/notifications")
    expect(user.page.locator(f"[data-ability={state}]")).to_contain_text(said)
    assert user.page.get_by_role("checkbox").count() == 0


def test_other_destinations_show_their_state_and_what_was_given_up(user: User) -> None:
    config = user.gateway.home / "config.toml"
    config.write_text(SETTINGS + '[notify.webhooks.mine]\nurl = "http://127.0.0.1:9/x"\nallow_private = true\n')
    user.open("/settings/notifications")
    expect(user.page.locator("[data-destination]")).to_contain_text("Nothing sent yet")
    user.page.get_by_role("button", name="Send a test to webhooks.mine").click()
    expect(user.page.locator("[data-toast]")).to_contain_text("The test did not reach webhooks.mine")


def test_the_app_can_be_installed_and_its_badge_counts(phone: Phone) -> None:
    phone.user.context.add_init_script("navigator.setAppBadge = async (count) => { window.badge = count }")
    phone.user.open("/home")
    phone.user.until(lambda: phone.page.evaluate("window.badge") == 0, "nothing waits")
    ask(phone)
    phone.user.until(lambda: phone.page.evaluate("window.badge") == 1, "one waits")
    session = phone.user.context.new_cdp_session(phone.page)
    manifest = session.send("Page.getAppManifest")
    assert manifest["errors"] == []
    assert json.loads(manifest["data"])["display"] == "standalone"
    # The browser of a test counts as a private window, in which nothing is ever installed.
    problems = [one["errorId"] for one in session.send("Page.getInstallabilityErrors")["installabilityErrors"]]
    assert set(problems) <= {"in-incognito"}
