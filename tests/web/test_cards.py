"""Cards one by one: who is called by them, what is said to them, what is asked before one of them or a board goes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.e2e.gateway import wait_for
from tests.web.board import card, column, label, new_board, new_card, over, status
from tests.web.user import User

LISTEN = """() => {
  window.told = [];
  const look = () => document.querySelectorAll("[data-toast]:not([data-told]) strong").forEach((one) => {
    one.closest("[data-toast]").dataset.told = "";
    window.told.push(one.textContent);
  });
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""


def listen(user: User) -> None:
    """Hear what is said from now on, however soon it goes."""
    expect(user.page.locator("[data-connection]")).to_have_text("Live")
    user.page.evaluate(LISTEN)


def told(user: User, *first: str) -> list[str]:
    """What was said, when these and everything before was heard: a command that ends is told last."""
    user.page.wait_for_function("first => first.every((one) => window.told.includes(one))", arg=first)
    user.gateway.command("POST", "/v1/tasks", {"shell": "true", "name": "the fence"})
    fence = "the fence is done"
    user.page.wait_for_function("fence => window.told.includes(fence)", arg=fence)
    user.page.wait_for_timeout(300)
    heard: list[str] = user.page.evaluate("window.told")
    return [one for one in heard if one != fence]


def test_a_card_that_needs_somebody_calls(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "calls")
    guest.open("/home")
    listen(guest)
    id = new_card(gateway, board, "Which way", "block left or **right**?", profile="demo")
    over(guest, id, "blocked")
    assert told(guest, "Which way needs you") == ["Which way needs you"]
    called = page.locator("[data-toast]", has_text="Which way needs you")
    expect(called).to_contain_text("left or right?")
    needs = page.get_by_role("region", name="Needs you").locator(f"[data-why='card/{id}']")
    expect(needs).to_contain_text("left or right?")
    ended = page.get_by_role("region", name="Since you last looked").locator("[data-why]", has_text="Which way")
    expect(ended).to_contain_text("left or right?")
    called.get_by_role("link", name="Open").click()
    page.wait_for_url(f"**/board/{board}/{label(gateway, id)}")
    expect(page.get_by_label("What it waits for")).to_contain_text("left or right?")


def test_nobody_is_told_of_what_the_page_shows(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "looks")

    session = guest.begin()
    listen(guest)
    gateway.command("POST", "/v1/tasks", {"shell": "true", "name": "the watch", "session": session})
    expect(page.get_by_role("log")).to_contain_text("the watch")
    assert told(guest) == []
    id = new_card(gateway, board, "Which way", "block left or right?", profile="demo", triage=True)
    guest.open(f"/card/{id}")  # an address of it that is not its own
    expect(page.get_by_role("complementary", name=f"Card {label(gateway, id)}")).to_be_visible()
    listen(guest)
    gateway.command("POST", f"/v1/cards/{id}/move", {"status": "ready"})
    over(guest, id, "blocked")
    assert told(guest) == []


def test_a_call_that_was_heard_or_answered_goes(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "heard")
    guest.open(f"/board/{board}")
    expect(page.locator("[data-connection]")).to_have_text("Live")
    ids = {title: new_card(gateway, board, title, "block what?", profile="demo") for title in ("Seen", "Answered")}
    calls = {title: page.locator("[data-toast]", has_text=f"{title} needs you") for title in ids}
    for call in calls.values():
        expect(call).to_be_visible()
    gateway.command("POST", f"/v1/cards/{ids['Answered']}/unblock", {"text": "block and now?"})
    over(guest, ids["Answered"], "blocked")
    expect(calls["Answered"]).to_contain_text("and now?")
    expect(calls["Answered"]).to_have_count(1)  # the newer word stands for both
    gateway.command("POST", f"/v1/cards/{ids['Answered']}/unblock", {"text": "hang"})
    expect(calls["Answered"]).to_have_count(0)
    expect(calls["Seen"]).to_be_visible()
    page.locator("[data-card]", has_text="Seen").click()
    page.wait_for_url(f"**/board/{board}/{label(gateway, ids['Seen'])}")
    expect(calls["Seen"]).to_have_count(0)
    guest.until(lambda: status(gateway, ids["Answered"]) == "running", "there is something to stop")
    gateway.command("POST", f"/v1/cards/{ids['Answered']}/stop", {})


def test_a_phone_shows_first_where_somebody_is_needed(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "pocket")
    new_card(gateway, board, "Parked", triage=True)
    over(guest, new_card(gateway, board, "Asks", "block what?", profile="demo"), "blocked")
    page.set_viewport_size({"width": 390, "height": 844})
    guest.open(f"/board/{board}")
    expect(page.get_by_role("tab", selected=True)).to_contain_text("Blocked")
    expect(page.locator("[data-card]", has_text="Asks")).to_be_visible()


@pytest.mark.parametrize(
    ("body", "stands", "said"),
    [("complete all of it", "done", "is done"), ("leave", "blocked", "needs you")],
    ids=["done", "failed for good"],
)
def test_the_end_of_a_card_is_told_once(guest: User, body: str, stands: str, said: str) -> None:
    board = new_board(guest.gateway, f"once-{stands}")
    guest.open("/home")
    listen(guest)
    id = new_card(guest.gateway, board, "Once", body, profile="demo", max_attempts=1)
    over(guest, id, stands)
    assert told(guest, f"Once {said}") == [f"Once {said}"]


def test_a_run_stands_on_home_once(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "home")
    gate = gateway.home.parent / f"{board}.gate"
    id = new_card(gateway, board, "Seen once", f"sh {wait_for(gate)}\ncomplete it", profile="demo")
    guest.until(lambda: status(gateway, id) == "running", "it runs")
    guest.open("/home")
    expect(page.get_by_label("Running now").get_by_role("link", name="Seen once")).to_have_count(1)
    gate.touch()
    over(guest, id, "done")
    ended = page.get_by_label("Since you last looked").get_by_role("link", name="Seen once")
    expect(ended).to_have_count(1)
    expect(ended).to_have_attribute("href", re.compile("^/tasks/"))


def test_a_link_to_a_run_is_followed_once(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "links")
    id = new_card(gateway, board, "Twice", "block which?", profile="demo")
    over(guest, id, "blocked")
    guest.watch_marks()
    guest.open(f"/s/{card(gateway, id)['card']['session']}#run-1")
    guest.saw_mark("Run 1")
    page.evaluate("window.marks = []")
    gateway.command("POST", f"/v1/cards/{id}/unblock", {"text": "complete this one"})
    guest.sees(f"Run 2 of card {label(gateway, id)} works in this session")
    page.wait_for_timeout(300)
    assert page.evaluate("window.marks") == []  # whoever reads on is not taken back


def test_a_comment_is_said_once_however_often_it_is_sent(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "hasty")
    id = new_card(gateway, board, "Hasty", triage=True)
    guest.open(f"/board/{board}/{id}")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/comments", hold)
    box = page.get_by_label("Comment", exact=True)
    box.fill("only once")
    for _ in range(3):
        box.press("Control+Enter")
    box.press_sequentially(", and more")
    guest.until(lambda: bool(held), "it is on its way")
    for route in held:
        route.continue_()
    guest.until(lambda: len(card(gateway, id)["comments"]) > 0, "it was said")
    expect(page.get_by_role("tabpanel")).to_contain_text("only once")
    assert [one["text"] for one in card(gateway, id)["comments"]] == ["only once"]
    expect(box).to_have_value("only once, and more")  # what was typed meanwhile is not lost


def test_a_board_is_archived_unless_a_card_of_it_runs(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "old-times")
    id = new_card(gateway, board, "Runs on", "slow 600 one two three", profile="demo")
    guest.until(lambda: status(gateway, id) == "running", "it runs")
    guest.open(f"/board/{board}")
    dialog = page.get_by_role("dialog", name="Archive the board “Old-times”?")

    def archive(word: str) -> None:
        page.get_by_role("button", name="Choose a board").click()
        page.get_by_role("menuitem", name="Archive this board…").click()
        expect(dialog).to_contain_text("Its 1 card")
        dialog.get_by_role("button", name=word).click()

    archive("Cancel")
    expect(page.get_by_role("button", name="Choose a board")).to_be_focused()  # where it was before
    archive("Archive 1 board")
    expect(page.locator("[data-toast]", has_text="Cards of this board are running.")).to_contain_text(
        "Stop them first."
    )
    gateway.command("POST", f"/v1/cards/{id}/stop", {})
    expect(column(page, "blocked").locator("[data-card]")).to_have_count(1)
    archive("Archive 1 board")
    page.wait_for_url(lambda url: board not in url)
    page.get_by_role("button", name="Choose a board").click()
    expect(page.get_by_role("menuitem", name="New board…")).to_be_visible()
    expect(page.get_by_role("menuitem", name=re.compile("^Old-times"))).to_have_count(0)


def test_what_an_edit_cannot_take_back_is_not_offered(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "edits")
    id = new_card(gateway, board, "Chosen", profile="demo", triage=True, resume="fresh", max_attempts=2)
    guest.open(f"/board/{board}/{id}")
    page.get_by_role("button", name=f"Menu of card {label(gateway, id)}").click()
    page.get_by_role("menuitem", name="Edit…").click()
    form = page.get_by_role("dialog", name="Edit the card")
    expect(form.locator("option", has_text="careful")).to_have_count(1)  # the profiles come behind
    offered = form.locator("option").all_text_contents()
    assert "careful" in offered and "Always continue (resume)" in offered
    assert not {"None: it is not started", "As in its profile"} & set(offered)
    form.get_by_label("Attempts").fill("")
    form.get_by_role("button", name="Save").click()
    expect(form).to_be_visible()  # empty would change nothing
    form.get_by_label("Attempts").fill("4")
    form.get_by_label("After a block or a crash").select_option("auto")
    form.get_by_role("button", name="Save").click()
    expect(form).to_have_count(0)
    found = card(gateway, id)
    assert (found["max_attempts"], found["resume"]) == (4, "auto")
