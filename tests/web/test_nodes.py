"""Where several gateways share a log: on which of them a session or a card runs is chosen and seen here."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.labelled_nodes import Nodes, answered, labelled_nodes, new_session
from tests.web.board import card, label, new_board, new_card
from tests.web.checks import WIDTHS, check_layout, loaded, set_drawer
from tests.web.user import User

ONE = "a-machine-with-a-long-name.building-7.eu-central-1.example.com"
TWO = "another-machine-with-a-long-name.building-9.us-west-2.example.com"[:63]
NODE = re.compile("^Node")
LABELS = {ONE: ["linux"], TWO: ["linux", "gpu"], "c": []}
BADGES = """() => [...document.querySelectorAll('[data-node]')].filter((one) => one.getClientRects().length > 0)
  .flatMap((one) => {
    const box = one.getBoundingClientRect(), faults = [];
    if (box.width < 40) faults.push(`${one.textContent} is ${Math.round(box.width)} px wide`);
    for (const other of one.parentElement.children) {
      const at = other.getBoundingClientRect();
      const wide = Math.min(at.right, box.right) - Math.max(at.left, box.left);
      const high = Math.min(at.bottom, box.bottom) - Math.max(at.top, box.top);
      if (other !== one && wide > 1 && high > 1) faults.push(`${one.textContent} lies over ${other.textContent}`);
      if (other !== one && other.textContent.length > 6 && at.width > 0 && at.width < 40)
        faults.push(`${other.textContent} has ${Math.round(at.width)} px beside ${one.textContent}`);
    }
    return faults;
  })"""
"""What is wrong with the names of nodes in lists: too narrow, over something, or no room left beside them."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Nodes]:
    with labelled_nodes(tmp_path_factory.mktemp("nodes"), labels=LABELS, timings={"store.lease": 60.0}) as found:
        yield found


@pytest.fixture
def visitor(browser: Browser, nodes: Nodes) -> Iterator[User]:
    with User(browser, nodes.a) as found:
        yield found


def move(user: User, menu: Locator, to: str) -> Locator:
    """Ask for another node; return the dialog."""
    menu.press("Enter")
    user.choose("Run on another node…")
    dialog = user.page.get_by_role("dialog", name=re.compile("^Where "))
    dialog.get_by_label(NODE).select_option(to)
    dialog.get_by_role("button", name="Move").click()
    return dialog


def test_a_new_session_runs_on_the_node_that_was_chosen_and_moves_to_another(visitor: User, nodes: Nodes) -> None:
    page = visitor.page
    visitor.open("/new")
    page.get_by_label("Directory").fill(str(nodes.directory / "shared"))
    choice = page.get_by_label(NODE)
    expect(choice.get_by_role("option")).to_have_text(
        ["Any node", f"{ONE}, this one", TWO, "Any with the label gpu", "Any with the label linux"]
    )
    choice.select_option("gpu")
    page.get_by_label(re.compile("^Profile")).select_option("demo")
    visitor.send("sh pwd")
    page.wait_for_url(re.compile(r"/s/[0-9a-f]{16}$"))
    session = page.url.rpartition("/")[2]
    assert answered(nodes.a, session) == TWO
    row = page.get_by_role("navigation", name="Sessions").locator(f'a[href="/s/{session}"]')
    expect(row.locator("[data-node]")).to_have_text(f"@{TWO}")
    expect(page.get_by_title("Change the agent")).to_contain_text(TWO)
    menu = page.get_by_role("region", name="Conversation").get_by_role("button", name="Session menu")
    dialog = move(visitor, menu, ONE)
    expect(dialog).to_have_count(0)
    visitor.sees(f"Where it runs was chosen by you: {ONE}")
    visitor.send("sh pwd")
    assert answered(nodes.a, session, 2) == ONE
    expect(row.locator("[data-node]")).to_have_text(f"@{ONE}")
    expect(page.get_by_title("Change the agent")).to_contain_text(ONE)


def test_a_session_that_cannot_move_says_why(visitor: User, nodes: Nodes) -> None:
    private = nodes.directory / "private"
    private.mkdir()
    session = new_session(nodes.a, private, title="It stays")
    assert answered(nodes.a, session) == ONE
    visitor.open(f"/s/{session}")
    menu = visitor.page.get_by_role("region", name="Conversation").get_by_role("button", name="Session menu")
    dialog = move(visitor, menu, TWO)
    expect(dialog.get_by_role("alert")).to_contain_text(f"It stays on node {ONE}")
    dialog.get_by_label(NODE).select_option("")
    expect(dialog.get_by_role("alert")).to_have_count(0)


def test_a_new_card_runs_on_the_node_that_was_chosen_and_can_be_moved(visitor: User, nodes: Nodes) -> None:
    gateway, page = nodes.a, visitor.page
    board = new_board(gateway, "placed")
    waits = new_card(gateway, board, "It waits", triage=True, profile="demo")
    visitor.open(f"/board/{board}/{label(gateway, waits)}")
    dialog = move(visitor, page.get_by_role("button", name=re.compile("^Menu of card")), "gpu")
    expect(dialog).to_have_count(0)
    visitor.until(lambda: card(gateway, waits)["card"]["node"] == "gpu", "it asks for the label")
    expect(page.locator(f'[data-card="{waits}"] [data-node]')).to_have_text("@gpu")
    page.get_by_role("button", name="Card", exact=True).click()
    form = page.get_by_role("dialog", name="New card")
    form.get_by_label("Title").fill("It goes there")
    form.get_by_label("Description").fill("sh pwd\ncomplete well")
    form.get_by_label(re.compile("^Profile")).select_option("demo")
    form.get_by_label(NODE).select_option(TWO)
    form.get_by_role("button", name="Add card").click()
    expect(form).to_have_count(0)
    ids = {one["title"]: one["id"] for one in gateway.get("/v1/cards")["cards"]}
    assert nodes.done(gateway, ids["It goes there"])["node"] == TWO


def test_names_of_nodes_cut_nothing_and_cover_nothing(visitor: User, nodes: Nodes) -> None:
    gateway, page = nodes.a, visitor.page
    shared = nodes.directory / "shared"
    title = "A title that is as long as titles of sessions usually are"
    idle = new_session(gateway, shared, f"say {'words ' * 40}", title=title, node=TWO)
    new_session(gateway, shared, "fail", title=title, node=TWO)
    answered(gateway, idle)
    start = {"shell": "echo out; sleep 600", "name": "python -m build --with a-long-name", "node": TWO}
    task = str(gateway.command("POST", "/v1/tasks", start)["task"])
    board = new_board(gateway, "long")
    asks = new_card(gateway, board, title, "block which one?", profile="demo", node=TWO)
    visitor.until(lambda: card(gateway, asks)["card"]["status"] == "blocked", "it is blocked")
    faults: list[str] = []
    for path in ("/home", "/s", "/tasks", f"/tasks/{task}", f"/board/{board}", f"/s/{idle}", "/new"):
        visitor.open(path)
        for width, height in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            page.locator("main h1:visible").first.wait_for()
            loaded(page)
            faults += [f"{path} at {width}: {fault}" for fault in check_layout(page) + page.evaluate(BADGES)]
    set_drawer(page, is_open=True)
    loaded(page)
    faults += [f"the drawer: {fault}" for fault in page.evaluate(BADGES)]
    gateway.command("POST", f"/v1/tasks/{task}/stop", {"force": True})
    gateway.until_ended(task)
    assert faults == []


def test_one_node_is_no_choice(guest: User) -> None:
    page = guest.page
    with page.expect_response("**/v1/nodes"):
        guest.open("/new")
    expect(page.get_by_label("Directory")).to_be_visible()
    expect(page.get_by_label(NODE)).to_have_count(0)
    guest.begin()
    page.get_by_role("region", name="Conversation").get_by_role("button", name="Session menu").press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Run on another node…")).to_have_count(0)
