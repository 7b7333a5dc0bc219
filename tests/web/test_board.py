"""The board: dragged with the mouse and with keys, a worker that asks and goes on, live in two tabs, long and small."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from holdfast.config import Home
from holdfast.domain.events import board_stream, card_stream
from holdfast.domain.events.card import BoardCreated, CardCreated
from holdfast.store.contract import Append, Write
from holdfast.store.sqlite.store import SqliteStore
from tests.actors import person
from tests.e2e.gateway import GatewayProcess
from tests.web.board import card, column, drag, label, new_board, new_card, over, status
from tests.web.checks import AXE, WIDTHS, check_axe, check_keyboard, check_layout, loaded, set_drawer
from tests.web.conftest import settled
from tests.web.user import User

CARDS, AT_ONCE = 2_000, 250
FEW = 60
"""Cards of a screen and what is near it."""
PHONE = {"width": 390, "height": 844}


async def fill(home: Path) -> None:
    place = Home(home)
    place.prepare()
    store = SqliteStore(place.database)
    now = time.time_ns() // 1_000_000
    await store.append(
        Append((Write(board_stream("many"), (BoardCreated(board="many", title="Many", by=person("cli")),)),), now)
    )
    for start in range(0, CARDS, AT_ONCE):
        writes = []
        for number in range(start, start + AT_ONCE):
            card = f"{number:08x}"
            created = CardCreated(
                card=card,
                board="many",
                title=f"Card {number}",
                body="",
                by=person("cli"),
                status="triage" if number % 2 else "ready",
            )
            writes.append(Write(card_stream(card), (created,)))
        await store.append(Append(tuple(writes), now + start))
    await store.close()


@pytest.fixture
def full(tmp_path: Path, browser: Browser) -> Iterator[GatewayProcess]:
    """A gateway with a board of thousands of cards. Whatever changes there, it looks at all of them."""
    home = settled(tmp_path / "home")
    with ThreadPoolExecutor(1) as beside:  # the browser's own loop runs in this thread
        beside.submit(asyncio.run, fill(home)).result()
    with GatewayProcess(home) as process:
        yield process.start()


@pytest.fixture
def visitor(browser: Browser, shared: GatewayProcess) -> Iterator[User]:
    with User(browser, shared, viewport={"width": 1500, "height": 900}) as found:
        yield found


@pytest.fixture
def installed(browser: Browser, shared: GatewayProcess) -> Iterator[User]:
    """A visitor with a service worker, which has the parts of the page while there is no line."""
    with User(browser, shared, viewport={"width": 1500, "height": 900}, service_workers="allow") as found:
        yield found


def test_dragged_with_the_mouse(visitor: User) -> None:
    gateway, page, board = visitor.gateway, visitor.page, new_board(visitor.gateway, "mouse", paused=True)
    first = new_card(gateway, board, "Sort the mail", triage=True)
    visitor.open(f"/board/{board}")
    expect(column(page, "triage").locator("[data-card]")).to_contain_text("Sort the mail")
    drag(page, "Sort the mail", "ready")
    expect(column(page, "ready").locator("[data-card]")).to_contain_text(
        "Board paused by you"
    )  # and it says why it does not run
    visitor.until(lambda: status(gateway, first) == "ready", "it was moved")
    drag(page, "Sort the mail", "running")  # only the board starts one
    expect(page.locator("[data-toast]")).to_contain_text("A card is not moved to running by hand.")
    expect(column(page, "ready").locator("[data-card]")).to_have_count(1)
    drag(page, "Sort the mail", "blocked")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("the key is missing")
    dialog.get_by_role("button", name="Block", exact=True).click()
    expect(column(page, "blocked").locator("[data-card]")).to_contain_text("the key is missing")
    drag(page, "Sort the mail", "todo")
    page.get_by_role("dialog", name=re.compile("^Unblock HF-\\d+ “Sort the mail”")).get_by_role(
        "button", name="Unblock and continue"
    ).click()
    expect(column(page, "ready").locator("[data-card]")).to_have_count(1)
    visitor.until(lambda: status(gateway, first) == "ready", "it was unblocked")  # the page shows it before it is so
    drag(page, "Sort the mail", "scheduled")
    dialog.get_by_role("button", name="Schedule").click()
    expect(column(page, "scheduled")).to_contain_text(re.compile("Scheduled|1"))
    visitor.until(lambda: status(gateway, first) == "scheduled", "it is scheduled")
    visitor.page.reload()
    column(page, "scheduled").locator("[data-card]").wait_for()
    drag(page, "Sort the mail", "done")
    dialog.get_by_label("Summary").fill("sorted by hand")
    dialog.get_by_role("button", name="Complete").click()
    visitor.until(lambda: status(gateway, first) == "done", "it is done")
    assert card(gateway, first)["summary"] == "sorted by hand"


def test_carried_with_the_keys(visitor: User) -> None:
    gateway, page, board = visitor.gateway, visitor.page, new_board(visitor.gateway, "keys", paused=True)
    one = new_card(gateway, board, "First of all", triage=True, priority=5)
    two = new_card(gateway, board, "Then this", triage=True)
    new_card(gateway, board, "Beside them")
    visitor.open(f"/board/{board}")
    page.get_by_role("link", name="First of all").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="Then this")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("link", name="Beside them")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-card] a:focus")).not_to_have_text("Beside them")
    page.keyboard.press("Space")
    said = page.locator('[aria-live="assertive"]')
    expect(said).to_contain_text("is lifted, over its own column")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("is over Todo")
    page.keyboard.press("Escape")
    expect(said).to_contain_text("was put back")
    assert {status(gateway, one), status(gateway, two)} == {"triage"}
    page.get_by_role("link", name="First of all").focus()
    page.keyboard.press("Space")
    expect(said).to_contain_text("First of all is lifted, over its own column")
    for place in ("Todo", "Scheduled", "Ready"):
        page.keyboard.press("ArrowRight")
        expect(said).to_contain_text(f"is over {place}")
    page.keyboard.press("Space")
    visitor.until(lambda: status(gateway, one) == "ready", "it was carried there")
    expect(column(page, "ready").get_by_role("link", name="First of all")).to_be_focused()  # it went along
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Beside them")).to_be_focused()
    page.keyboard.press("k")
    expect(page.get_by_role("link", name="First of all")).to_be_focused()
    moved = page.locator("[data-card]").filter(has_text="First of all")
    expect(moved.get_by_role("button", name="Why?")).to_be_visible()  # the log has confirmed the move
    page.keyboard.press("Tab")
    expect(moved.get_by_role("button", name="Why?")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=re.compile("^Menu of HF-.* First of all"))).to_be_focused()
    page.keyboard.press("Enter")
    visitor.choose("Move to Todo")  # it waits for nothing: refused once, with the reason
    expect(page.get_by_role("status").get_by_text("does not wait for another card")).to_have_count(1)
    expect(column(page, "ready").get_by_role("link", name="First of all")).to_be_visible()
    expect(page.locator("[data-card] :focus")).to_have_count(1)  # the focus is still on its card
    page.get_by_role("link", name="Then this").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/board/{board}/{label(gateway, two)}")
    expect(page.get_by_role("complementary", name=f"Card {label(gateway, two)}")).to_be_visible()
    page.keyboard.press("Escape")
    page.wait_for_url(f"**/board/{board}")
    expect(page.get_by_role("link", name="Then this")).to_be_focused()
    page.get_by_role("link", name="Beside them").press("Enter")
    drawer = page.get_by_role("complementary", name=re.compile("^Card HF-"))
    drawer.get_by_role("button", name=re.compile("^Menu of card")).press("Enter")
    visitor.choose("Archive…")
    page.get_by_role("dialog").get_by_role("button", name="Archive 1 card").press("Enter")
    expect(page.get_by_role("link", name="Beside them")).to_have_count(0)
    expect(page.get_by_role("link", name="First of all")).to_be_focused()  # the one above it


def faults_at_widths(user: User, path: str, *, ready: str) -> list[str]:
    """What is wrong with the layout, also beside the drawer of tasks, which a phone does not have here."""
    found: list[str] = []
    for width, height in WIDTHS.items():
        user.page.set_viewport_size({"width": width, "height": height})
        user.open(path)
        user.page.locator(ready).first.wait_for()
        loaded(user.page)
        for is_open in (False, True) if width > PHONE["width"] else ():
            set_drawer(user.page, is_open=is_open)
            found += [f"{path} at {width}, {is_open}: {fault}" for fault in check_layout(user.page)]
        if width > PHONE["width"]:
            set_drawer(user.page, is_open=False)
        else:
            found += [f"{path} at {width}: {fault}" for fault in check_layout(user.page)]
    return found


def test_what_a_card_asks_made_and_did(visitor: User) -> None:
    gateway, page, board = visitor.gateway, visitor.page, new_board(visitor.gateway, "made")
    id = new_card(gateway, board, "Paint it", "block Which **colour**, `red` or blue?", profile="demo")
    new_card(gateway, board, "ارسمه", triage=True)
    over(visitor, id, "blocked")
    made = Path(card(gateway, id)["runs"][0]["workspace"]) / "sub" / "notes.txt"
    made.parent.mkdir()
    made.write_text("first line\n")
    visitor.open(f"/board/{board}/{id}")
    page.wait_for_url(f"**/board/{board}/{label(gateway, id)}")  # an old link gets the number
    ask = page.get_by_label("What it waits for")
    expect(ask.locator("blockquote strong")).to_have_text("colour")
    face = page.locator("[data-card] [data-reason]")
    expect(face).to_have_text("Which colour, red or blue?")
    expect(page.locator("[data-title]", has_text="ارسمه")).to_have_css("direction", "rtl")
    drawer = page.get_by_role("complementary", name=re.compile("^Card HF-"))
    drawer.get_by_role("tab", name="Changes").click()
    files = drawer.get_by_role("list", name="Changed files")
    expect(files.get_by_role("listitem")).to_have_count(1)
    expect(files).to_contain_text("sub/notes.txt")
    expect(files).to_contain_text("+first line")
    drawer.get_by_role("tab", name="Log").click()
    log = drawer.get_by_role("list", name="Log of run 1")
    expect(log).to_contain_text(f"Run 1 of card {label(gateway, id)} works in this session")
    expect(log).to_contain_text("kanban_block")
    assert "needs_input" not in page.locator("body").inner_text()
    visitor.open("/tasks")
    row = page.get_by_role("row", name=re.compile(f"{label(gateway, id)} Paint it"))
    expect(row).to_contain_text("board Made")
    faults = faults_at_widths(visitor, f"/board/{board}/{label(gateway, id)}", ready="aside h2")
    page.set_viewport_size({"width": 1024, "height": 768})
    expect(page.locator("[data-selected]")).to_be_in_viewport(ratio=1)  # the drawer does not hide it
    faults += faults_at_widths(visitor, f"/board/{board}", ready="[data-card]") + check_keyboard(page)
    assert faults == []


def test_a_new_card_keeps_its_text_a_column_has_a_limit_and_an_unknown_board_says_so(visitor: User) -> None:
    gateway, page, board = visitor.gateway, visitor.page, new_board(visitor.gateway, "drafts", paused=True)
    new_card(gateway, board, "One"), new_card(gateway, board, "Two")
    visitor.open(f"/board/{board}")
    page.get_by_role("button", name="Card", exact=True).click()
    form = page.get_by_role("dialog", name="New card")
    form.get_by_label("Title").fill("A long thought")
    form.get_by_label("Description").fill("typed for a while")
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    page.reload()
    page.get_by_role("button", name="Card", exact=True).click()
    expect(form.get_by_label("Title")).to_have_value("A long thought")
    expect(form.get_by_label("Description")).to_have_value("typed for a while")
    page.set_viewport_size({"width": 390, "height": 500})
    expect(form.get_by_role("button", name="Add card")).to_be_in_viewport(ratio=1)  # the footer is whole
    assert check_layout(page) == []
    page.set_viewport_size({"width": 1500, "height": 900})
    form.get_by_role("button", name="Add card").click()
    drawer = page.get_by_role("complementary", name=re.compile("^Card HF-"))
    expect(drawer).to_contain_text("A long thought")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Card", exact=True).click()
    expect(form.get_by_label("Title")).to_have_value("")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Menu of Ready").click()
    page.get_by_role("menuitem", name="Set a limit…").click()
    page.get_by_label("At most").fill("2")
    page.get_by_role("button", name="Set the limit").click()
    expect(column(page, "ready").locator("header")).to_contain_text("3 / 2")
    visitor.open("/board/never-made")
    expect(page.get_by_text("There is no board “never-made”")).to_be_visible()
    page.get_by_role("button", name="Drafts", exact=True).click()
    page.wait_for_url(f"**/board/{board}")
    gateway.command("POST", f"/v1/boards/{board}/archive", {})
    visitor.open(f"/board/{board}")
    page.get_by_role("button", name="Restore it").click()
    expect(page.get_by_role("link", name="One", exact=True)).to_be_visible()


def test_a_worker_asks_and_goes_on_with_what_it_remembers(visitor: User) -> None:
    gateway, page, board = visitor.gateway, visitor.page, new_board(visitor.gateway, "answer")
    visitor.open(f"/board/{board}")
    expect(page.get_by_text("An empty board")).to_be_visible()
    page.get_by_role("button", name="Add the first card").click()
    form = page.get_by_role("dialog", name="New card")
    form.get_by_label("Title").fill("Tell the secret")
    form.get_by_label("Description").fill("say secret\nblock which?")
    form.locator("select").first.select_option("demo")
    form.get_by_role("button", name="Add card").click()
    drawer = page.get_by_role("complementary", name=re.compile("^Card "))
    ask = drawer.get_by_label("What it waits for")
    expect(ask).to_contain_text("demo asks")
    expect(ask.locator("blockquote")).to_have_text("which?")
    expect(ask).to_contain_text("Continues the session of run 1")
    expect(page.get_by_role("link", name=re.compile("^Board.*need you"))).to_be_visible()
    page.wait_for_url(re.compile(r"/HF-\d+$"))
    id = page.url.rsplit("/", 1)[1]
    ask.get_by_label("Answer or comment").fill("count\ncomplete ok")
    ask.get_by_role("button", name="Unblock and continue").click()
    expect(drawer.locator("[data-chip]").first).to_have_text("Done")
    expect(ask).to_have_count(0)
    over(visitor, id, "done")
    runs = card(gateway, id)["runs"]
    assert [run["outcome"] for run in runs] == ["blocked", "done"]
    assert runs[1]["resumes"] == 1 and runs[0]["session"] == runs[1]["session"]
    drawer.get_by_role("tab", name="Runs 2").click()
    expect(drawer.get_by_role("tabpanel").get_by_role("listitem").first).to_contain_text("goes on with run 1")
    drawer.get_by_role("tab", name="Card").click()
    expect(drawer).to_contain_text("Result")
    drawer.get_by_role("tab", name="Runs 2").click()
    drawer.get_by_role("link", name="Transcript of run 2").click()
    page.wait_for_url(f"**/s/{runs[1]['session']}#run-2")
    marked = page.locator("article[data-kind]", has_text=f"Run 2 of card {id} works in this session")
    expect(marked).to_be_in_viewport()
    marked.get_by_role("link", name="Open card").click()
    page.wait_for_url(f"**/board/{board}/{id}")


def test_dragged_from_triage_to_ready_it_starts(visitor: User) -> None:
    gateway, page, board = visitor.gateway, visitor.page, new_board(visitor.gateway, "starts")
    id = new_card(gateway, board, "Begin with this", "slow 600 one two three", profile="demo", triage=True)
    visitor.open(f"/board/{board}")
    expect(column(page, "triage").locator("[data-card]")).to_contain_text("Begin with this")
    drag(page, "Begin with this", "ready")
    expect(column(page, "running").locator("[data-card]")).to_contain_text("Begin with this")
    visitor.until(lambda: status(gateway, id) == "running", "it runs")
    assert [run["run"] for run in card(gateway, id)["runs"]] == [1]
    gateway.command("POST", f"/v1/cards/{id}/stop", {})


def test_words_to_a_worker_become_comments(visitor: User) -> None:
    gateway, page, board = visitor.gateway, visitor.page, new_board(visitor.gateway, "worker")
    id = new_card(gateway, board, "A long one", "slow 600 " + "word " * 600, profile="demo")
    visitor.until(lambda: status(gateway, id) == "running", "it runs")
    visitor.open(f"/s/{card(gateway, id)['card']['session']}")
    expect(page.get_by_text("Your message becomes a comment on the card")).to_be_visible()
    page.get_by_label("Message", exact=True).fill("faster, if you can")
    page.get_by_role("button", name="Comment", exact=True).click()
    visitor.until(lambda: len(card(gateway, id)["comments"]) == 1, "it is a comment")
    page.get_by_role("link", name="Open card").last.click()
    drawer = page.get_by_role("complementary", name=f"Card {label(gateway, id)}")
    expect(drawer).to_contain_text("faster, if you can")
    drawer.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop 1 run").click()
    expect(drawer.locator("[data-chip]").first).to_contain_text("needs input")


def test_two_tabs_see_the_same(visitor: User) -> None:
    gateway, page, board = visitor.gateway, visitor.page, new_board(visitor.gateway, "tabs")
    visitor.open(f"/board/{board}")
    other = visitor.tab()
    other.goto(f"{gateway.url}/board/{board}")
    expect(other.get_by_text("An empty board")).to_be_visible()
    page.get_by_role("button", name="Pause the board").click()
    expect(other.get_by_text("Paused by you", exact=True)).to_be_visible()
    first, second = new_card(gateway, board, "Seen twice", triage=True), new_card(gateway, board, "Comes first")
    for tab in (page, other):
        expect(column(tab, "triage").locator("[data-card]")).to_contain_text("Seen twice")
    page.bring_to_front()  # a tab behind another one draws nothing
    drag(page, "Seen twice", "ready")
    expect(column(other, "ready")).to_contain_text("Seen twice")
    gateway.command("PATCH", f"/v1/cards/{first}", {"title": "Renamed elsewhere"})
    for tab in (page, other):
        expect(column(tab, "ready")).to_contain_text("Renamed elsewhere")
    page.get_by_role("link", name="Renamed elsewhere").click()
    drawer = page.get_by_role("complementary", name=f"Card {label(gateway, first)}")
    drawer.get_by_role("button", name="Wait for another card").click()
    drawer.get_by_label("Wait for which card").fill("comes")
    drawer.get_by_role("button", name=re.compile("Comes first")).click()
    expect(drawer.get_by_text("before this")).to_be_visible()
    drawer.get_by_label("Comment", exact=True).fill("after that one")
    drawer.get_by_role("button", name="Comment", exact=True).click()
    expect(other.locator("[data-card]", has_text="Renamed elsewhere").locator("[data-comments]")).to_contain_text("1")
    expect(other.locator("[data-card]", has_text="Comes first")).to_contain_text("Board paused by you")
    drawer.get_by_role("button", name=f"Menu of card {label(gateway, first)}").click()
    page.get_by_role("menuitem", name="Archive…").click()
    page.get_by_role("dialog").get_by_role("button", name="Archive 1 card").click()
    expect(other.locator("[data-card]", has_text="Renamed elsewhere")).to_have_count(0)
    assert status(gateway, second) == "ready"


def test_thousands_of_cards(browser: Browser, full: GatewayProcess) -> None:
    with User(browser, full) as user:
        page = user.page
        user.open("/board/many")
        expect(column(page, "ready").locator("[data-card]").first).to_contain_text("Card 0")
        expect(page.locator("[data-bar]")).to_contain_text("2,000 cards")
        assert page.locator("[data-card]").count() < FEW
        stack = column(page, "ready").locator("[data-cards]")

        def at_the_end() -> bool:
            stack.evaluate("box => { box.scrollTop = box.scrollHeight }")
            return page.get_by_text("Card 1998", exact=True).count() > 0

        user.until(at_the_end, "the last one is reached")
        expect(page.get_by_text("Card 1998", exact=True)).to_be_visible()
        assert page.locator("[data-card]").count() < FEW
        page.get_by_label("Filter cards").fill("card 1234")
        expect(page.locator("[data-card]")).to_have_count(1)


def test_on_a_phone(browser: Browser, shared: GatewayProcess) -> None:
    board = new_board(shared, "phone", paused=True)
    id = new_card(shared, board, "Small and handy", triage=True)
    with User(browser, shared, viewport=PHONE, has_touch=True) as user:
        page = user.page
        user.open(f"/board/{board}")
        page.get_by_role("button", name="Choose a board").click()
        expect(page.get_by_role("menu")).to_be_in_viewport(ratio=1)
        page.keyboard.press("Escape")
        page.get_by_role("tab", name="Triage 1").click()
        page.get_by_role("button", name=re.compile("^Menu of HF-.* Small and handy")).click()
        page.get_by_role("menuitem", name="Move to Review").click()
        page.get_by_role("tab", name="Review 1").click()
        page.get_by_role("link", name="Small and handy").click()
        drawer = page.get_by_role("complementary", name=f"Card {label(shared, id)}")
        expect(drawer).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        drawer.get_by_role("button", name="Back to the board").click()
        expect(page.get_by_role("tab", name="Review 1")).to_be_visible()
        new_card(shared, board, "Somebody's", triage=True, profile="careful")
        expect(page.get_by_role("tab", name="Triage 1")).to_be_visible()
        page.get_by_label("Profile").select_option("careful")
        expect(page.get_by_role("tab", name="Review 0")).to_be_visible()
        expect(page.get_by_role("tab", name="Triage 1")).to_be_visible()
        page.get_by_label("Profile").select_option("")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        new_card(shared, board, "In ready")
        page.set_viewport_size({"width": 900, "height": 800})  # turned around: one can do without triage
        expect(column(page, "ready").locator("[data-card]")).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("Triage ?, folded"))).to_be_visible()


def test_axe_finds_nothing_on_a_board(browser: Browser, shared: GatewayProcess) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is missing: make web")
    board = new_board(shared, "axe")
    id = new_card(shared, board, "Asks", "block which?", profile="demo", priority=2)
    new_card(shared, board, "Waits", parents=[id])
    with User(browser, shared) as user:
        user.until(lambda: status(shared, id) == "blocked", "it is blocked")
        found: list[str] = []
        for path in (f"/board/{board}", f"/board/{board}/{id}", "/board/nothing-here"):
            user.open(path)
            user.page.get_by_role("heading", level=1).first.wait_for(state="attached")
            loaded(user.page)
            found += [f"{path}: {violation}" for violation in check_axe(user.page)]
        assert not found, "\n".join(found)


def test_a_board_without_a_line_says_as_of_when_and_never_that_it_is_empty(installed: User) -> None:
    visitor, gateway, page = installed, installed.gateway, installed.page
    seen, unseen = new_board(gateway, "seen", paused=True), new_board(gateway, "unseen", paused=True)
    new_card(gateway, seen, "one")
    new_card(gateway, seen, "two", triage=True)
    new_card(gateway, unseen, "three")
    visitor.route_line()
    visitor.open(f"/board/{seen}")
    expect(page.get_by_text("2 cards")).to_be_visible()
    drawer = page.get_by_role("complementary", name=re.compile("^Card "))
    page.get_by_role("link", name="one").click()
    expect(drawer).to_contain_text("You created it")
    visitor.cut_line()
    visitor.context.set_offline(True)
    expect(page.get_by_text(re.compile(r"2 cards *as of \d\d:\d\d, offline"))).to_be_visible()
    expect(page.locator("[data-card]")).to_have_count(2)
    expect(drawer).to_contain_text(re.compile(r"as of \d\d:\d\d, offline"))
    page.get_by_role("link", name="two").click()
    expect(drawer).to_contain_text("Not known right now")
    expect(drawer).not_to_contain_text("not found")
    page.get_by_role("button", name="Choose a board").click()
    page.get_by_role("menuitem", name=re.compile("^Unseen")).click()
    main = page.get_by_role("main")
    expect(main).to_contain_text("The cards are not known")
    for said in ("0 cards", "An empty board", "Nothing here"):
        expect(main).not_to_contain_text(said)
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_role("combobox").fill("three")
    expect(page.get_by_role("dialog")).to_contain_text("the gateway does not answer")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    visitor.page.go_back()
    expect(main).to_contain_text(re.compile(r"as of \d\d:\d\d, offline"))
