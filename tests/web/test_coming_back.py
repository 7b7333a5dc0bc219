"""The page is a window onto the log: closed, killed, cut off, it comes back and shows all of it, once."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.e2e.gateway import wait_for
from tests.web.user import User

WORDS = "one two three four five six seven eight nine ten"


def cursor(user: User) -> int:
    """How far this device has read, as the gateway knows it."""
    return int(user.page.evaluate("fetch('/v1/devices/me').then(a => a.json())")["cursors"].get(user.session, 0))


def test_close_the_tab_in_the_middle_of_a_turn_and_reopen(guest: User) -> None:
    guest.begin()
    guest.send("slow 600 " + " ".join(f"n{number}" for number in range(1200)))
    guest.sees("n0 n1")
    guest.close_tab()
    guest.reopen("/")
    guest.page.wait_for_url(f"**/s/{guest.session}")
    guest.sees("n0 n1 n2 n3")
    assert guest.page.locator('[data-banner="away"]').count() == 0  # nothing was finished while away
    guest.page.get_by_role("button", name="Stop the turn").click()
    guest.finished(1)
    guest.sees("Stopped")
    expect(guest.page.locator("article[data-kind]", has_text="n0 n1 n2")).to_have_count(
        2
    )  # what was asked, and the answer once


def test_what_was_finished_while_the_tab_was_closed_is_counted(guest: User) -> None:
    guest.begin()
    gate = guest.gateway.home.parent / "gate"
    guest.send(f"sh {wait_for(gate)}\nsay {WORDS}")
    expect(guest.page.get_by_role("group", name=re.compile("^Call of terminal"))).to_be_visible()
    guest.close_tab()
    gate.touch()
    guest.finished(1)
    guest.reopen("/")
    guest.sees_banner("Reconnected — 1 message received while away")
    guest.page.get_by_role("button", name="Dismiss").click()
    expect(guest.page.locator('[data-banner="away"]')).to_have_count(0)
    guest.until(lambda: guest.gateway.session(guest.session)["version"] == cursor(guest), "it was read")
    guest.close_tab()
    guest.reopen("/")
    guest.sees(WORDS)
    guest.page.wait_for_timeout(700)
    assert guest.page.locator('[data-banner="away"]').count() == 0  # it was read


def test_kill_the_gateway_in_the_middle_and_start_it_again(user: User) -> None:
    user.begin()
    user.send(f"slow 10 {WORDS}")
    user.sees("one two")
    port = user.port
    user.gateway.kill9()
    expect(user.page.locator("[data-connection]")).not_to_have_text("Live")
    user.gateway.start(port)
    expect(user.page.locator("[data-connection]")).to_have_text("Live")
    user.sees(WORDS)
    user.finished(1)
    user.sees("Turn 1 resumed after")
    expect(user.page.locator("article [data-text]", has_text=WORDS)).to_have_count(2)  # question and answer, once


def test_three_messages_arrive_while_the_line_is_cut(guest: User) -> None:
    guest.route_line()
    guest.begin()
    guest.send("say hello")
    expect(guest.page.locator('article[data-kind="end"]')).to_be_visible()  # the page has heard of the end, too
    guest.cut_line()
    expect(guest.page.locator("[data-connection]")).not_to_have_text("Live")
    for number in range(3):
        path = f"/v1/sessions/{guest.session}/messages"
        guest.gateway.client.post(path, json={"text": f"say while away {number}"})
        guest.finished(number + 2)
    guest.mend_line()
    guest.sees_banner("Reconnected — 3 messages received while away")
    guest.watch_marks()
    guest.page.get_by_role("button", name="Jump to first").click()
    guest.saw_mark("while away 0")
    expect(guest.page.locator('[data-kind="splice"]')).to_contain_text("Received while away")
    guest.page.get_by_role("button", name="To the end").click()
    expect(guest.page.locator("article[data-kind]", has_text="while away 2")).to_have_count(2)


def test_what_was_read_after_a_cut_is_not_told_again(guest: User) -> None:
    guest.route_line()
    guest.begin()
    guest.cut_line()
    expect(guest.page.locator("[data-connection]")).not_to_have_text("Live")
    guest.gateway.client.post(f"/v1/sessions/{guest.session}/messages", json={"text": "say while away"})
    guest.finished(1)
    guest.mend_line()
    guest.sees_banner("1 message")
    cursors = "fetch('/v1/devices/me').then(answer => answer.json()).then(mine => mine.cursors)"
    version = guest.gateway.get(f"/v1/sessions/{guest.session}")["session"]["version"]
    guest.until(lambda: guest.page.evaluate(cursors).get(guest.session) == version, "it was read")
    guest.page.get_by_role("link", name="Home", exact=True).click()
    expect(guest.page.get_by_role("heading", name="Home")).to_be_visible()
    guest.page.get_by_role("link", name="Chats").click()
    guest.sees("while away")
    guest.page.wait_for_timeout(700)
    expect(guest.page.locator('[data-banner="away"], [data-kind="splice"]')).to_have_count(0)


def test_a_backup_was_restored(user: User) -> None:
    gateway = user.gateway
    port = gateway.port
    gateway.command("POST", "/v1/cards", {"title": "Old enough", "triage": True})
    gateway.terminate()
    kept = {path: path.read_bytes() for path in gateway.home.glob("holdfast.db*")}
    gateway.start(port)
    user.open("/board/default")
    expect(user.page.get_by_text("Old enough")).to_be_visible()
    for number in range(8):
        gateway.command("POST", "/v1/cards", {"title": f"Too new {number}", "triage": True})
    expect(user.page.get_by_text("Too new 7")).to_be_visible()
    gateway.terminate()
    for path in gateway.home.glob("holdfast.db*"):
        path.unlink()
    for path, content in kept.items():
        path.write_bytes(content)
    gateway.start(port)
    expect(user.page.get_by_text("Too new")).to_have_count(0)
    expect(user.page.locator("[data-connection]")).to_have_text("Live")
    expect(user.page.get_by_text("Old enough")).to_be_visible()


def test_the_line_is_dead_and_nobody_says_so(guest: User) -> None:
    guest.begin()
    guest.context.set_offline(True)  # the sockets stay open and silent
    expect(guest.page.locator("[data-connection]")).not_to_have_text("Live")
    expect(guest.page.locator('[data-banner="offline"]')).to_be_visible()
    expect(guest.page.locator('[data-banner="offline"]')).to_contain_text("turns wait and commands keep running")
    guest.context.set_offline(False)
    expect(guest.page.locator("[data-connection]")).to_have_text("Live")


def test_outbox_offline_then_online_sent_once(guest: User) -> None:
    guest.begin()
    tried: list[str] = []
    guest.page.on("requestfailed", lambda request: tried.append(request.url))
    guest.context.set_offline(True)
    guest.send("say from the tunnel")
    expect(guest.page.get_by_text("Waits in this browser")).to_be_visible()
    guest.until(lambda: sum(url.endswith("/messages") for url in tried) >= 2, "it is tried again")
    guest.context.set_offline(False)
    expect(guest.page.get_by_text("Waits in this browser")).to_have_count(0)
    guest.finished(1)
    assert [event["text"] for event in guest.events("InputReceived")] == ["say from the tunnel"]


def test_two_tabs_do_not_fight(guest: User) -> None:
    guest.begin()
    other = guest.tab()
    other.goto(f"{guest.gateway.url}/s/{guest.session}")
    expect(other.get_by_label("Message", exact=True)).to_be_visible()
    guest.send("slow 2 said in one tab")
    expect(other.locator("article[data-kind]", has_text="said in one tab")).to_have_count(2)
    other.get_by_label("Message", exact=True).fill("say said in the other")
    other.get_by_label("Message", exact=True).press("Enter")
    guest.sees("said in the other")
    guest.finished(2)
    assert len(guest.events("InputReceived")) == 2


def test_a_session_that_was_deleted_elsewhere(guest: User) -> None:
    guest.begin()
    guest.gateway.client.request("DELETE", f"/v1/sessions/{guest.session}")
    expect(guest.page.get_by_text("This session no longer exists")).to_be_visible()
