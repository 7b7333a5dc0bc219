"""What goes wrong around a page: hostile text, a wrong clock, no storage, a gateway that is gone, an old code."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from playwright.sync_api import Browser, expect

from tests.e2e.gateway import GatewayProcess
from tests.web.user import WAIT_MS, User, new_context

TURN, SAID = "\u202e", "\u2039U+202E\u203a"
"""A mark that turns text around, and how the page says that it is there."""
FORBIDDEN = """for (const name of ['localStorage', 'sessionStorage', 'indexedDB', 'caches', 'BroadcastChannel'])
    Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError') } })"""


def test_a_task_with_a_hostile_name_and_output(guest: User) -> None:
    """Script tags, a link, OSC 52, a title for the window, text that turns around, and a line of 10 MB."""
    name = f"<img src=x onerror=window.pwned=1> {TURN}gnp.exe"
    shell = (
        "printf '\\033]52;c;aGFja2Vk\\007\\033]0;owned\\007<script>window.pwned=1</script>\\n';"
        "printf 'rm \\342\\200\\256gnp.x\\n'; head -c 10485760 /dev/zero | tr '\\0' x; echo; echo the end"
    )
    started = {"shell": shell, "name": name}
    task = str(guest.gateway.client.post("/v1/tasks", json=started).json()["task"])
    guest.gateway.until_ended(task)
    guest.context.grant_permissions(["clipboard-read", "clipboard-write"])
    guest.open(f"/tasks/{task}")
    output = guest.page.get_by_role("region", name="Output of")
    expect(output).to_contain_text("the end")
    expect(guest.page.locator("h1")).to_contain_text(f"{SAID}gnp.exe")
    guest.page.get_by_role("button", name="Start").click()
    expect(output).to_contain_text("<script>window.pwned=1</script>")
    expect(output).to_contain_text(f"rm {SAID}gnp.x")
    assert len(output.inner_text()) < 1_000_000  # of the line of 10 MB only what is near the eye is there
    guest.open("/tasks")
    expect(guest.page.locator("td [data-row-link]").first).to_contain_text(SAID)
    assert guest.page.evaluate("window.pwned") is None
    assert TURN not in guest.page.evaluate("document.documentElement.innerHTML")
    assert guest.page.title() == "Tasks · Holdfast"
    assert guest.page.evaluate("navigator.clipboard.readText().catch(() => '')") != "hacked"


def test_what_an_approval_is_asked_for_is_what_is_shown(guest: User) -> None:
    guest.begin("careful")
    guest.send(f"sh echo {TURN}txt.exe")
    expect(guest.page.get_by_role("group", name="Approval")).to_contain_text(f"{SAID}txt.exe")
    expect(guest.page.locator('[data-kind="person"] [data-text]').first).to_contain_text(SAID)
    guest.open("/home")
    expect(guest.page.get_by_label("Needs you")).to_contain_text(SAID)


def test_a_very_long_answer_is_not_waited_for(guest: User) -> None:
    guest.begin()
    guest.gateway.client.post(f"/v1/sessions/{guest.session}/messages", json={"text": "say " + "*word* " * 60_000})
    guest.finished(1)
    expect(guest.page.get_by_role("button", name="show the rest")).to_be_visible()
    expect(guest.page.get_by_label("Message", exact=True)).to_be_enabled()


def test_an_expired_code(browser: Browser, gateway: GatewayProcess) -> None:
    code = gateway.client.post("/v1/codes", json={}).json()["code"]
    port = gateway.port
    gateway.kill9()
    with closing(sqlite3.connect(gateway.home / "holdfast.db")) as db, db:
        db.execute("UPDATE codes SET expires_at = expires_at - 600001")
    gateway.start(port)
    page = new_context(browser).new_page()
    page.goto(f"{gateway.url}/#code={code}")
    expect(page.get_by_role("alert")).to_contain_text("is older than 10 min. Run `holdfast open` for a new one.")
    assert code not in page.url
    page.get_by_label("One-time code").fill(gateway.client.post("/v1/codes", json={}).json()["code"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/home")
    page.context.close()


def test_a_revoked_device_is_told_and_can_come_back(user: User) -> None:
    user.begin()
    (device,) = user.gateway.get("/v1/devices")["devices"]
    user.gateway.command("DELETE", f"/v1/devices/{device['id']}")
    expect(user.page.get_by_role("alert")).to_contain_text(
        "This browser was signed out. Agents and commands keep running."
    )
    user.page.get_by_label("One-time code").fill(user.gateway.command("POST", "/v1/codes")["code"])
    user.page.get_by_role("button", name="Sign in").click()
    expect(user.page.get_by_label("Message", exact=True)).to_be_visible()
    user.send("say back again")
    user.sees("back again")


def test_the_conversation_stands_when_its_markdown_cannot_be_loaded(browser: Browser, gateway: GatewayProcess) -> None:
    """The gateway goes away in the very moment in which the page asks for the rest of itself."""
    with User(browser, gateway) as user:
        user.context.route("**/assets/Markdown*", lambda route: route.abort())
        user.open("/home")
        user.begin()
        user.send("say it is **plain** then")
        user.finished(1)
        user.sees("it is **plain** then")
        gateway.kill9()
        expect(user.page.locator('[data-banner="offline"]')).to_contain_text("commands keep running", timeout=WAIT_MS)
        user.sees("it is **plain** then")


def test_the_gateway_is_gone_for_an_hour(browser: Browser, gateway: GatewayProcess) -> None:
    with User(browser, gateway) as user:
        user.page.clock.install()
        user.open("/home")
        user.begin()
        user.send("say before")
        user.finished(1)
        user.sees("before")
        port = user.port
        gateway.kill9()
        expect(user.page.locator("[data-connection]")).not_to_have_text("Live", timeout=WAIT_MS)
        user.page.clock.fast_forward("01:00:00")
        expect(user.page.locator('[data-banner="offline"]')).to_contain_text("commands keep running", timeout=WAIT_MS)
        user.send("say written while it was gone")
        expect(user.page.get_by_text("Waits in this browser")).to_be_visible()
        gateway.start(port)
        expect(user.page.locator("[data-connection]")).to_have_text("Live", timeout=WAIT_MS)
        user.finished(2)
        user.sees("written while it was gone")
        expect(user.page.locator('[data-banner="offline"]')).to_have_count(0)
        assert [event["text"] for event in user.events("InputReceived")] == [
            "say before",
            "say written while it was gone",
        ]


def test_ages_go_by_the_gateways_clock(browser: Browser, gateway: GatewayProcess) -> None:
    task = gateway.client.post("/v1/tasks", json={"shell": "sleep 600", "name": "a sleeper"}).json()["task"]
    gateway.client.post("/v1/sessions", json={"text": "say hi"})
    for days in (-3, 5):
        context = new_context(browser)
        skew = f"const real = Date.now; Date.now = () => real() + {days * 86_400_000}"
        context.add_init_script(skew)
        page = context.new_page()
        page.goto(f"{gateway.url}/#code={gateway.client.post('/v1/codes', json={}).json()['code']}")
        page.wait_for_url("**/home")
        expect(
            page.get_by_role("region", name="Running now").locator("[data-why]", has_text="a sleeper")
        ).to_contain_text(re.compile(r"\d+ (s|min)"))
        page.goto(f"{gateway.url}/tasks/{task}")
        expect(page.get_by_role("list", name="History")).to_contain_text(re.compile(r"Has run for \d+ (s|min)"))
        page.goto(f"{gateway.url}/s")
        expect(page.get_by_role("complementary", name="Sessions").get_by_text("Today")).to_have_text("Today")
        context.close()
    gateway.client.post(f"/v1/tasks/{task}/stop", json={"force": True})
    gateway.until_ended(task)


def test_a_browser_that_keeps_nothing(browser: Browser, shared: GatewayProcess) -> None:
    with User(browser, shared) as user:
        user.context.add_init_script(FORBIDDEN)
        user.open("/home")
        user.begin()
        user.send("say kept in memory")
        user.sees("kept in memory")
        user.context.set_offline(True)
        user.send("say from the tunnel")
        expect(user.page.get_by_text("Waits in this browser")).to_be_visible()
        user.context.set_offline(False)
        expect(user.page.get_by_text("Waits in this browser")).to_have_count(0)
        user.finished(2)
        for path in ("/home", "/tasks", "/settings/notifications"):
            user.open(path)
            expect(user.page.locator("[data-connection]")).to_have_text("Live")
        expect(user.page.get_by_text("This browser stores nothing")).to_be_visible()


def test_what_waited_for_a_session_that_was_deleted_is_not_lost(guest: User) -> None:
    guest.begin()
    expect(guest.page.locator("[data-connection]")).to_have_text("Live")
    guest.context.set_offline(True)
    guest.send("say something that took an hour to write")
    expect(guest.page.get_by_text("Waits in this browser")).to_be_visible()
    guest.gateway.client.request("DELETE", f"/v1/sessions/{guest.session}")
    guest.context.set_offline(False)
    expect(guest.page.get_by_text("This session no longer exists")).to_be_visible(timeout=WAIT_MS)
    expect(guest.page.locator('[data-kind="outbox"]')).to_contain_text("took an hour to write")
    expect(guest.page.locator('[data-kind="outbox"]')).to_contain_text("Not taken", timeout=WAIT_MS)
    guest.page.get_by_role("button", name="Discard").click()
    expect(guest.page.locator('[data-kind="outbox"]')).to_have_count(0)


def test_two_tabs_write_while_the_line_is_cut_and_both_are_sent_once(guest: User) -> None:
    guest.begin()
    other = guest.tab()
    other.goto(f"{guest.gateway.url}/s/{guest.session}")
    expect(other.get_by_label("Message", exact=True)).to_be_visible()
    guest.context.set_offline(True)
    guest.send("say one from here")
    other.get_by_label("Message", exact=True).fill("say one from there")
    other.get_by_label("Message", exact=True).press("Enter")
    for page in (guest.page, other):
        expect(page.get_by_text("Waits in this browser")).to_have_count(2)
    guest.context.set_offline(False)
    for page in (guest.page, other):
        expect(page.get_by_text("Waits in this browser")).to_have_count(0, timeout=WAIT_MS)
    guest.finished(1)
    guest.until(lambda: guest.gateway.session(guest.session)["state"] == "idle", "all is said")
    assert sorted(event["text"] for event in guest.events("InputReceived")) == [
        "say one from here",
        "say one from there",
    ]
