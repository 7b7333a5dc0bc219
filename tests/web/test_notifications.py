"""Notifications: opt-in, only while nobody looks, once for all tabs. And the banner of an older build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.tasks import home_with_commands
from tests.web.board import label
from tests.web.conftest import SETTINGS, settled
from tests.web.user import DESKTOP, User

BROWSER = DESKTOP
"""The headless shell shows no notifications."""
QUICK = {
    "lifecycle.reset_check": 0.1,
    "lifecycle.stale_check": 0.1,
    "minute_ms": 1_500,
}
"""A minute of a reset policy is a second and a half."""

HIDDEN = (
    "Object.defineProperty(Document.prototype, 'visibilityState', { get: () => window.shown ? 'visible' : 'hidden' })"
)
RECORDED = """(() => {
    const show = registration.showNotification.bind(registration)
    self.shown = []
    registration.showNotification = async (title, options) => {
        await show(title, options)
        self.shown.push([title, options.data.to])
    }
})()"""
"""Only the worker can say what it has shown. Chromium forgets a notification about which somebody asks
(`getNotifications`) while it is about to be shown, so nobody here asks before it is."""
LISTED = """navigator.serviceWorker.ready.then(worker => worker.getNotifications())
    .then(found => found.map(one => [one.title, one.data.to]))"""


def opted_in(user: User) -> None:
    """Ask for them in the settings, as a person does; from then on it is recorded what is shown."""
    user.context.grant_permissions(["notifications"], origin=user.gateway.url)
    user.open("/settings/notifications")
    box = user.page.get_by_role("checkbox")
    box.click()
    expect(box).to_be_checked()  # when the browser has said yes
    user.page.evaluate("navigator.serviceWorker.ready")
    user.until(lambda: len(user.context.service_workers) == 1, "the service worker is there")
    (worker,) = user.context.service_workers
    worker.evaluate(RECORDED)


def shown(user: User) -> list[list[str]]:
    (worker,) = user.context.service_workers
    found: list[list[str]] = worker.evaluate("self.shown")
    return found


def question(user: User) -> str:
    """Something that somebody should hear about; the session that waits."""
    body = {"text": "sh echo waits", "profile": "careful"}
    return str(user.gateway.client.post("/v1/sessions", json=body).json()["session"])


@pytest.fixture
def hidden(installed: User) -> User:
    installed.context.add_init_script(HIDDEN)
    return installed


@pytest.fixture
def listening(tmp_path: Path, browser: Browser) -> Iterator[User]:
    """Somebody who asked for them and looks elsewhere, while the clocks of the gateway run fast."""
    with home_with_commands(settled(tmp_path / "home"), timings=QUICK) as process:
        with User(browser, process.start(), service_workers="allow") as user:
            user.context.add_init_script(HIDDEN)
            opted_in(user)
            user.open("/home")
            expect(user.page.locator("[data-connection]")).to_have_text("Live")
            yield user


def all_told(user: User, first: str) -> list[list[str]]:
    """What is shown, when what leads there and everything before a last question was heard."""
    user.until(lambda: any(to == first for _, to in shown(user)), f"{first} is shown")
    asked = f"/s/{question(user)}"
    user.until(lambda: any(to == asked for _, to in shown(user)), "the question is shown")
    user.page.wait_for_timeout(700)  # a title may have to be asked for
    return [one for one in shown(user) if one[1] != asked]


def rules_told(user: User, first: str) -> list[list[str]]:
    return [one for one in all_told(user, first) if one[0] != "A turn ended"]


def test_nobody_is_told_who_did_not_ask(hidden: User) -> None:
    hidden.context.grant_permissions(["notifications"], origin=hidden.gateway.url)
    hidden.open("/home")
    expect(hidden.page.locator("[data-connection]")).to_have_text("Live")
    question(hidden)
    expect(hidden.page.locator("[data-toast]")).to_contain_text("A session waits for you")  # it was heard
    hidden.page.wait_for_timeout(700)
    assert hidden.page.evaluate(LISTED) == []


def test_two_hidden_tabs_tell_once(hidden: User) -> None:
    opted_in(hidden)
    hidden.open("/home")
    other = hidden.tab()
    other.goto(hidden.gateway.url + "/tasks")
    for page in (hidden.page, other):
        expect(page.locator("[data-connection]")).to_have_text("Live")
    first = question(hidden)
    for page in (hidden.page, other):
        expect(page.locator("[data-toast]")).to_contain_text("A session waits for you")
    second = question(hidden)
    told = [["A session waits for you", f"/s/{first}"], ["A session waits for you", f"/s/{second}"]]
    hidden.until(lambda: len(shown(hidden)) >= 2, "each thing has its own")
    hidden.page.wait_for_timeout(700)
    assert shown(hidden) == told  # neither once more
    assert sorted(hidden.page.evaluate(LISTED)) == sorted(told)


def test_who_looks_at_any_tab_is_not_told(hidden: User) -> None:
    opted_in(hidden)
    hidden.open("/home")
    other = hidden.tab()
    other.add_init_script("window.shown = true")
    other.goto(hidden.gateway.url + "/home")
    for page in (hidden.page, other):
        expect(page.locator("[data-connection]")).to_have_text("Live")
    question(hidden)
    expect(hidden.page.locator("[data-toast]")).to_contain_text("A session waits for you")
    hidden.page.wait_for_timeout(900)
    assert shown(hidden) == []


def at_rest(user: User) -> str:
    """A session in which something was said."""
    body = {"text": "say hello", "profile": "demo"}
    id = str(user.gateway.client.post("/v1/sessions", json=body).json()["session"])
    user.gateway.until_rest(id)
    return id


def test_a_reset_by_a_rule_is_told_unless_that_is_not_wanted(listening: User) -> None:
    gateway, told, quiet = listening.gateway, at_rest(listening), at_rest(listening)
    by_hand = at_rest(listening)
    gateway.command("POST", f"/v1/sessions/{by_hand}/reset", {})
    for id, notify in ((quiet, False), (told, True)):
        policy = {"mode": "idle", "idle_minutes": 1, "notify": notify, "hand_over_note": False}
        gateway.command("POST", f"/v1/sessions/{id}/reset/policy", {"policy": policy})
        gateway.until_event(id, "ChapterOpened")
    assert rules_told(listening, f"/s/{told}") == [["Chapter 2 of a session began", f"/s/{told}"]]
    expect(listening.page.locator("[data-toast]", has_text="Chapter 2 of a session began")).to_contain_text(
        "no user activity for"
    )


def test_stale_commands_are_told_once_a_day(listening: User) -> None:
    gateway, id = listening.gateway, at_rest(listening)
    for name in ("an old watcher", "another one"):
        body = {"shell": "sleep 300", "name": name, "session": id, "lifetime": "session"}
        gateway.command("POST", "/v1/tasks", body)
    gateway.command("POST", f"/v1/sessions/{id}/archive", {"running": "keep"})
    listening.until(lambda: len(gateway.get("/v1/tasks/stale")["tasks"]) == 2, "they are stale")
    (gateway.home / "config.toml").write_text(SETTINGS + "[session_reset]\nat_hour = 5\n")  # it has struck by now
    assert rules_told(listening, "/home") == [["2 commands are stale", "/home"]]
    expect(listening.page.get_by_label("Stale commands")).to_contain_text("an old watcher")


@pytest.mark.parametrize(
    ("body", "stands", "said"),
    [("complete all of it", "done", "is done"), ("leave", "blocked", "needs you")],
    ids=["done", "failed for good"],
)
def test_a_card_tells_once(listening: User, body: str, stands: str, said: str) -> None:
    """Not its run, nor the turn of its worker."""
    gateway = listening.gateway
    given = {"title": "Once", "body": body, "profile": "demo", "max_attempts": 1}
    id = gateway.command("POST", "/v1/cards", given)["card"]
    listening.until(lambda: gateway.get(f"/v1/cards/{id}")["card"]["status"] == stands, f"it is {stands}")
    gateway.until_rest(gateway.get(f"/v1/cards/{id}")["card"]["session"])
    to = f"/board/default/{label(gateway, id)}"
    assert all_told(listening, to) == [[f"Once {said}", to]]


def test_an_agent_in_the_background_tells_once(listening: User) -> None:
    body = {"prompt": "slow 2 one two three", "profile": "demo"}
    task = listening.gateway.command("POST", "/v1/tasks/agents", body)["task"]
    listening.until(lambda: listening.gateway.get(f"/v1/tasks/{task}")["state"] == "done", "it is done")
    assert [to for _, to in all_told(listening, f"/tasks/{task}")] == [f"/tasks/{task}"]


def test_an_older_build_asks_to_be_loaded_anew(user: User) -> None:
    user.route_line()
    user.open("/home")
    expect(user.page.locator("[data-connection]")).to_have_text("Live")
    assert user.page.get_by_text("This page is from an older build.").count() == 0
    user.page.route("**/v1/build", lambda route: route.fulfill(json={"version": "9.9.9", "build": "another"}))
    user.cut_line()
    expect(user.page.locator("[data-connection]")).not_to_have_text("Live")
    user.mend_line()
    expect(user.page.get_by_text("This page is from an older build.")).to_be_visible()
    user.page.unroute("**/v1/build")
    with user.page.expect_navigation():
        user.page.get_by_role("button", name="Reload").click()
    expect(user.page.locator("[data-connection]")).to_have_text("Live")
    assert user.page.get_by_text("This page is from an older build.").count() == 0
