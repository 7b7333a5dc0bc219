"""The page is a window onto the log: closed, killed, cut off, it comes back and shows all of it, once."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.e2e.gateway import wait_for
from tests.web.seat import Seat

WORDS = "one two three four five six seven eight nine ten"


def cursor(seat: Seat) -> int:
    """How far this device has read, as the gateway knows it."""
    return int(seat.page.evaluate("fetch('/v1/devices/me').then(a => a.json())")["cursors"].get(seat.session, 0))


def test_close_the_tab_in_the_middle_of_a_turn_and_reopen(seat: Seat) -> None:
    seat.begin()
    seat.send("slow 600 " + " ".join(f"n{number}" for number in range(1200)))
    seat.sees("n0 n1")
    seat.close_tab()
    seat.reopen("/")
    seat.page.wait_for_url(f"**/s/{seat.session}")
    seat.sees("n0 n1 n2 n3")
    assert seat.page.locator('[data-banner="away"]').count() == 0  # nothing was finished while away
    seat.page.get_by_role("button", name="Stop the turn").click()
    seat.finished(1)
    seat.sees("Stopped")
    expect(seat.page.locator("article[data-kind]", has_text="n0 n1 n2")).to_have_count(
        2
    )  # what was asked, and the answer once


def test_what_was_finished_while_the_tab_was_closed_is_counted(seat: Seat) -> None:
    seat.begin()
    gate = seat.gateway.home.parent / "gate"
    seat.send(f"sh {wait_for(gate)}\nsay {WORDS}")
    expect(seat.page.get_by_role("group", name=re.compile("^Call of terminal"))).to_be_visible()
    seat.close_tab()
    gate.touch()
    seat.finished(1)
    seat.reopen("/")
    seat.sees_banner("Reconnected — 1 message received while away")
    seat.page.get_by_role("button", name="Dismiss").click()
    expect(seat.page.locator('[data-banner="away"]')).to_have_count(0)
    seat.until(
        lambda: seat.gateway.client.get("/v1/sessions").json()["sessions"][0]["version"] == cursor(seat), "it was read"
    )
    seat.close_tab()
    seat.reopen("/")
    seat.sees(WORDS)
    seat.page.wait_for_timeout(700)
    assert seat.page.locator('[data-banner="away"]').count() == 0  # it was read


def test_kill_the_gateway_in_the_middle_and_start_it_again(seat: Seat) -> None:
    seat.begin()
    seat.send(f"slow 10 {WORDS}")
    seat.sees("one two")
    port = seat.port
    seat.gateway.kill9()
    expect(seat.page.locator("[data-connection]")).not_to_have_text("Live")
    seat.gateway.start(port)
    expect(seat.page.locator("[data-connection]")).to_have_text("Live")
    seat.sees(WORDS)
    seat.finished(1)
    seat.sees("Turn 1 resumed after")
    expect(seat.page.locator("article [data-text]", has_text=WORDS)).to_have_count(2)  # question and answer, once


def test_three_messages_arrive_while_the_line_is_cut(seat: Seat) -> None:
    seat.begin()
    seat.send("say hello")
    seat.sees("demo")
    seat.finished(1)
    seat.cut_line()
    expect(seat.page.locator("[data-connection]")).not_to_have_text("Live")
    for number in range(3):
        path = f"/v1/sessions/{seat.session}/messages"
        seat.gateway.client.post(path, json={"text": f"say while away {number}"})
        seat.finished(number + 2)
    seat.mend_line()
    seat.sees_banner("Reconnected — 3 messages received while away")
    seat.watch_marks()
    seat.page.get_by_role("button", name="Jump to first").click()
    seat.saw_mark("while away 0")
    expect(seat.page.locator('[data-kind="splice"]')).to_contain_text("Received while away")
    seat.page.get_by_role("button", name="To the end").click()
    expect(seat.page.locator("article[data-kind]", has_text="while away 2")).to_have_count(2)


def test_what_was_read_after_a_cut_is_not_told_again(seat: Seat) -> None:
    seat.begin()
    seat.cut_line()
    expect(seat.page.locator("[data-connection]")).not_to_have_text("Live")
    seat.gateway.client.post(f"/v1/sessions/{seat.session}/messages", json={"text": "say while away"})
    seat.finished(1)
    seat.mend_line()
    seat.sees_banner("1 message")
    cursors = "fetch('/v1/devices/me').then(answer => answer.json()).then(mine => mine.cursors)"
    version = seat.gateway.get(f"/v1/sessions/{seat.session}")["session"]["version"]
    seat.until(lambda: seat.page.evaluate(cursors).get(seat.session) == version, "it was read")
    seat.page.get_by_role("link", name="Home", exact=True).click()
    expect(seat.page.get_by_role("heading", name="Home")).to_be_visible()
    seat.page.get_by_role("link", name="Chats").click()
    seat.sees("while away")
    seat.page.wait_for_timeout(700)
    expect(seat.page.locator('[data-banner="away"], [data-kind="splice"]')).to_have_count(0)


def test_a_backup_was_restored(seat: Seat) -> None:
    gateway = seat.gateway
    port = gateway.port
    gateway.command("POST", "/v1/cards", {"title": "Old enough", "triage": True})
    gateway.terminate()
    kept = {path: path.read_bytes() for path in gateway.home.glob("holdfast.db*")}
    gateway.start(port)
    seat.open("/board/default")
    expect(seat.page.get_by_text("Old enough")).to_be_visible()
    for number in range(8):
        gateway.command("POST", "/v1/cards", {"title": f"Too new {number}", "triage": True})
    expect(seat.page.get_by_text("Too new 7")).to_be_visible()
    gateway.terminate()
    for path in gateway.home.glob("holdfast.db*"):
        path.unlink()
    for path, content in kept.items():
        path.write_bytes(content)
    gateway.start(port)
    expect(seat.page.get_by_text("Too new")).to_have_count(0)
    expect(seat.page.locator("[data-connection]")).to_have_text("Live")
    expect(seat.page.get_by_text("Old enough")).to_be_visible()


def test_the_line_is_dead_and_nobody_says_so(seat: Seat) -> None:
    seat.begin()
    seat.context.set_offline(True)  # the sockets stay open and silent
    expect(seat.page.locator("[data-connection]")).not_to_have_text("Live")
    expect(seat.page.locator('[data-banner="offline"]')).to_be_visible()
    expect(seat.page.locator('[data-banner="offline"]')).to_contain_text("turns wait and commands go on")
    seat.context.set_offline(False)
    expect(seat.page.locator("[data-connection]")).to_have_text("Live")


def test_outbox_offline_then_online_sent_once(seat: Seat) -> None:
    seat.begin()
    tried: list[str] = []
    seat.page.on("requestfailed", lambda request: tried.append(request.url))
    seat.context.set_offline(True)
    seat.send("say from the tunnel")
    expect(seat.page.get_by_text("Waits in this browser")).to_be_visible()
    seat.until(lambda: sum(url.endswith("/messages") for url in tried) >= 2, "it is tried again")
    seat.context.set_offline(False)
    expect(seat.page.get_by_text("Waits in this browser")).to_have_count(0)
    seat.finished(1)
    assert [event["text"] for event in seat.events("InputReceived")] == ["say from the tunnel"]


def test_two_tabs_do_not_fight(seat: Seat) -> None:
    seat.begin()
    other = seat.tab()
    other.goto(f"{seat.gateway.url}/s/{seat.session}")
    expect(other.get_by_label("Message", exact=True)).to_be_visible()
    seat.send("slow 2 said in one tab")
    expect(other.locator("article[data-kind]", has_text="said in one tab")).to_have_count(2)
    other.get_by_label("Message", exact=True).fill("say said in the other")
    other.get_by_label("Message", exact=True).press("Enter")
    seat.sees("said in the other")
    seat.finished(2)
    assert len(seat.events("InputReceived")) == 2


def test_a_session_that_was_deleted_elsewhere(seat: Seat) -> None:
    seat.begin()
    seat.gateway.client.request("DELETE", f"/v1/sessions/{seat.session}")
    expect(seat.page.get_by_text("This session no longer exists")).to_be_visible()
