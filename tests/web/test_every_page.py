"""Every page: it fits, the keyboard reaches all of it, axe agrees, the focus is not lost, and nothing is made up."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.e2e.gateway import GatewayProcess
from tests.web.board import label, new_board, new_card, over
from tests.web.checks import AXE, check_axe, check_keyboard, check_layout, layout_faults, loaded, set_drawer
from tests.web.conftest import settled
from tests.web.user import SECTIONS, User, new_context

PHONE = {"width": 390, "height": 844}
STATED = re.compile(
    r"\b0 \w|\bNothing (?:is|needs|has|in)|\bNo (?:session|task|card|model) |All well|empty board|not found"
)
"""What a page may say only if it heard so."""
NOT_KNOWN = re.compile(
    r"not known|unknown|cannot|does not answer|as of \d\d:\d\d, offline|"
    r"^Looking$|tokens in context|^Tokens of the last",
    re.I,
)
"""Instead of what it would have said; the tokens are in the log, which comes over a line of its own."""
FIRST = re.compile(r"/v1/(devices/me|build|status)")
"""What is asked once before there is a page at all."""
STATEMENTS = """() => {
  const texts = [];
  const tidy = (text) => text.replace(/\\s+/g, ' ').trim();
  for (const one of document.querySelectorAll('#root *')) {
    if (one.closest('svg, datalist, [data-banner], [data-connection]')) continue;
    const speaks = [...one.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && tidy(child.textContent));
    if (speaks) texts.push(tidy(one.textContent));
    for (const name of ['aria-label', 'placeholder', 'title']) texts.push(tidy(one.getAttribute(name) ?? ''));
  }
  return [...new Set(texts)].filter(Boolean);
}"""
AS_OF = re.compile(r"as of \d\d:\d\d, offline")
STANDS_ALONE = ("/settings/appearance", "/settings/notifications", "/new", "/no/such/page")
"""What these show does not come from the gateway, or does not change."""


class Filled:
    """A gateway where something of everything has happened."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self.gateway = gateway
        self.session = gateway.create("say hello\nsh exit 3")
        gateway.until_rest(self.session)
        gateway.until_rest(gateway.create("fail"))
        self.waiting = str(
            gateway.command("POST", "/v1/sessions", {"text": "sh echo waits", "profile": "careful"})["session"]
        )
        gateway.until_event(self.waiting, "WaitOpened")
        self.task = str(gateway.command("POST", "/v1/tasks", {"shell": "echo out; exit 3", "name": "it broke"})["task"])
        gateway.until_ended(self.task)
        started = gateway.command("POST", "/v1/tasks/agents", {"prompt": "say from the background"})
        gateway.until_rest(started["session"])
        self.agent = str(started["task"])
        self.board = new_board(gateway, "whole")
        self.card = new_card(gateway, self.board, "It asks", "block which?", profile="demo")

    @property
    def pages(self) -> list[str]:
        """All of them."""
        return [
            "/home",
            "/s",
            f"/s/{self.session}",
            f"/s/{self.waiting}",
            "/new",
            "/tasks",
            f"/tasks/{self.task}",
            f"/tasks/{self.agent}",
            f"/board/{self.board}",
            f"/board/{self.board}/{label(self.gateway, self.card)}",
            *(f"/settings/{section}" for section in SECTIONS),
            "/no/such/page",
        ]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Filled]:
    with GatewayProcess(settled(tmp_path_factory.mktemp("every") / "home")) as process:
        yield Filled(process.start())


@pytest.fixture
def visitor(browser: Browser, filled: Filled) -> Iterator[User]:
    with User(browser, filled.gateway) as found:
        over(found, filled.card, "blocked")
        yield found


def go(page: Page, path: str) -> None:
    """To another page without a new load."""
    page.evaluate("path => history.pushState(null, '', path)", path)


def test_pages_that_have_no_test_of_their_own_fit_and_are_reached(visitor: User, filled: Filled) -> None:
    card = f"/board/{filled.board}/{label(filled.gateway, filled.card)}"
    faults: list[str] = []
    for path in ("/home", "/s", f"/tasks/{filled.agent}", "/no/such/page"):
        faults += layout_faults(visitor, path, "main h1:visible")
        faults += [f"{path}: {fault}" for fault in check_keyboard(visitor.page)]
    for path in (card, f"/tasks/{filled.agent}", "/no/such/page"):
        visitor.open(path)
        loaded(visitor.page)
        faults += [f"{path}: {fault}" for fault in check_keyboard(visitor.page)]
        faults += [f"{path}: {fault}" for fault in check_axe(visitor.page) if AXE.exists()]
    assert faults == []


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_to_sign_in_is_whole(browser: Browser, filled: Filled, width: int) -> None:
    page = new_context(browser, viewport={"width": width, "height": 844}).new_page()
    page.goto(filled.gateway.url)
    expect(page.get_by_role("heading", name="Sign in to Holdfast")).to_be_visible()
    assert check_layout(page) + check_keyboard(page) == []
    assert not AXE.exists() or check_axe(page) == []
    page.context.close()


def test_pages_have_one_main_heading(visitor: User, filled: Filled) -> None:
    visitor.open("/home")
    for path in filled.pages:
        go(visitor.page, path)
        loaded(visitor.page)
        expect(visitor.page.get_by_role("heading", level=1)).to_have_count(1)


def test_every_page_says_as_of_when_while_the_line_is_cut(visitor: User, filled: Filled) -> None:
    page = visitor.page
    visitor.route_line()
    visitor.open("/home")
    for path in filled.pages:
        go(page, path)
        loaded(page)
    visitor.cut_line()
    visitor.context.set_offline(True)
    expect(page.locator("[data-connection]").first).to_have_text("Offline")
    for path in filled.pages:
        go(page, path)
        loaded(page)
        main = page.get_by_role("main")
        expect(main).to_contain_text("No connection to the gateway since")
        if path not in STANDS_ALONE:
            expect(main).to_contain_text(AS_OF)
        assert main.get_by_text("All well").count() == 0, path


def test_page_that_was_never_asked_for_says_at_once_that_it_is_not_known_offline(visitor: User, filled: Filled) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 1100, "height": 800})
    page.clock.install()
    visitor.route_line()
    visitor.open(f"/tasks/{filled.task}")  # the program of this page is here, not the other task
    loaded(page)
    go(page, f"/s/{filled.session}")
    loaded(page)
    visitor.cut_line()
    visitor.context.set_offline(True)
    expect(page.locator("[data-connection]").first).to_have_text("Offline")
    sessions = page.get_by_role("complementary", name="Sessions")
    expect(sessions).to_contain_text(AS_OF)
    conversation = page.get_by_role("region", name="Conversation")
    list_box, page_box = sessions.bounding_box(), conversation.bounding_box()
    assert list_box and page_box and list_box["x"] + list_box["width"] <= page_box["x"], (list_box, page_box)
    heights = conversation.locator("[data-bar]").first.evaluate(
        "bar => [...bar.children].map((one) => one.offsetHeight)"
    )
    assert max(heights) <= 32, heights  # nothing of the bar takes a second line
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    go(page, f"/tasks/{filled.agent}")
    known = page.get_by_role("main").get_by_text("Not known right now")
    for _ in range(8):  # less than the first pause before a query is asked again
        page.clock.run_for(100)
        page.wait_for_timeout(100)
    expect(known.first).to_be_visible()


SPAN = re.compile(r"(< )?[\d.]+ (ms|s|min|h)( [\d.]+ (s|min))?")


def statements(page: Page) -> list[str]:
    """Return what a page says, also what is hidden at this width or only heard: each text as one sentence."""
    expect(page.locator("main > div > [data-loading]")).to_have_count(0)  # its program is here, whatever it asks for
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found: list[str] = page.evaluate(STATEMENTS)
    return found


def test_no_page_states_what_it_has_not_heard(visitor: User, filled: Filled) -> None:
    """Neither while it loads, nor when the gateway refuses to answer or does not answer, nor offline.

    What a page says before it was told anything is a part of what it says afterwards: numbers as they are, other words
    at least within a sentence.
    """
    page = visitor.page
    held: list[Route] = []
    passed: set[str] = set()
    answer = "begin"

    def treat(route: Route) -> None:
        if answer == "begin" and (first := FIRST.search(route.request.url)) and first[0] not in passed:
            passed.add(first[0])
            route.continue_()
        elif answer in ("begin", "held"):
            held.append(route)
        elif answer == "refused":
            route.fulfill(status=500, json={"error": {"code": "internal", "message": "It cannot say."}})
        else:
            route.abort()

    visitor.route_line()
    visitor.open("/home")
    set_drawer(page, is_open=True)
    heard: dict[str, set[str]] = {}
    ends = {f"/s/{filled.session}": ("exit code 3", "Answer again"), f"/s/{filled.waiting}": ("echo waits",)}
    for path in filled.pages:
        go(page, path)
        loaded(page)
        for end in ends.get(path, ()):  # a log comes in pieces
            expect(page.get_by_role("main")).to_contain_text(end)
        heard[path] = set(statements(page))
    page.route(re.compile(r"/v1/"), treat)
    visitor.open("/no/such/page")
    expect(page.get_by_role("heading", name="No such page")).to_be_visible()
    made_up: list[str] = []
    for answer in ("held", "refused", "offline"):
        if answer == "offline":
            visitor.cut_line()
            visitor.context.set_offline(True)
            expect(page.locator("[data-connection]").first).to_have_text("Offline")
        for _ in range(len(held)):
            treat(held.pop(0))
        for path in filled.pages:
            go(page, path)
            if answer == "refused":
                loaded(page)
            if answer != "held" and path in ("/home", "/s", "/tasks", f"/board/{filled.board}"):
                expect(page.get_by_role("main")).to_contain_text(re.compile("not known|cannot", re.I))
            for said in statements(page):
                known = any(said == one or (said in one and not re.search(r"\d", said)) for one in heard[path])
                if SPAN.fullmatch(said):  # what takes time takes longer now
                    known = any(SPAN.fullmatch(one) for one in heard[path])
                if STATED.search(said) or not (known or said in path or NOT_KNOWN.search(said)):
                    made_up.append(f"{answer} {path}: {said}")
    assert made_up == []


def focus_is_somewhere(page: Page) -> None:
    page.wait_for_function("() => document.activeElement !== document.body")


def act(page: Page, control: Locator, gone: Locator) -> None:
    """Press it by keyboard, and wait until it is gone: the focus is not gone with it."""
    control.focus()
    page.keyboard.press("Enter")
    expect(gone).to_have_count(0)
    focus_is_somewhere(page)


def test_focus_is_not_lost_with_what_had_it(guest: User) -> None:
    gateway, page = guest.gateway, guest.page
    # what needs somebody
    gateway.until_rest(gateway.create("fail"))
    guest.open("/home")
    dismiss = page.get_by_role("region", name="Needs you").get_by_role("button", name="Dismiss")
    act(page, dismiss, dismiss)
    # an answer in the conversation
    guest.begin("careful")
    guest.send("sh echo asks first")
    card = page.get_by_role("group", name="Approval")
    act(page, card.get_by_role("button", name="Allow once"), card)
    guest.finished(1)
    # a message in the queue
    guest.send("slow 600 " + "one two " * 500)
    guest.sees("one two")
    guest.send("say later")
    queued = page.get_by_role("list", name="Queued messages").get_by_role("listitem")
    act(page, queued.get_by_role("button", name="Remove"), queued)
    page.get_by_role("button", name="Stop the turn").click()
    guest.finished(2)
    # a session, with its page
    menu = page.get_by_role("region", name="Conversation").get_by_role("button", name="Session menu")
    menu.focus()
    page.keyboard.press("Enter")
    guest.choose("Delete")
    dialog = page.get_by_role("dialog", name=re.compile("^Delete"))
    act(page, dialog.get_by_role("button", name=re.compile("^Delete")), dialog)
    page.wait_for_url("**/s")
    focus_is_somewhere(page)
    # a profile
    config = gateway.home / "config.toml"
    before = config.read_text()
    config.write_text(before + '\n[profiles.passing]\nmodel = "demo"\n')
    guest.open("/settings/profiles")
    page.get_by_role("button", name="Menu of the profile passing").press("Enter")
    guest.choose("Delete…")
    row = page.get_by_role("button", name="Menu of the profile passing")
    act(page, page.get_by_role("dialog").get_by_role("button", name="Delete 1 profile"), row)
    # a word about something
    toast = page.locator("[data-toast]")
    gateway.command("POST", "/v1/tasks", {"shell": "exit 3", "name": "it fails"})
    act(page, toast.get_by_role("button", name="Close"), toast)


def test_one_escape_closes_one_thing(visitor: User, filled: Filled) -> None:
    page = visitor.page
    visitor.open(f"/board/{filled.board}/{label(filled.gateway, filled.card)}")
    card = page.get_by_role("complementary", name=re.compile("^Card HF-"))
    drawer = page.get_by_role("complementary", name="Background tasks")
    menu, why = page.get_by_role("menu"), page.get_by_role("dialog", name="Why")
    form = page.get_by_role("dialog", name="Edit the card")
    expect(card).to_contain_text("which?")
    set_drawer(page, is_open=True)
    button = card.get_by_role("button", name=re.compile("^Menu of card"))
    button.press("Enter")
    visitor.choose("Edit…")
    expect(form).to_be_visible()
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    button.press("Enter")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    card.get_by_role("button", name="Why?").first.press("Enter")
    expect(why).to_be_visible()
    page.keyboard.press("Escape")
    expect(why).to_have_count(0)
    expect(card).to_be_visible()
    expect(drawer).to_be_visible()
    page.keyboard.press("Escape")
    expect(card.or_(drawer)).to_have_count(1)
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect(drawer).to_have_count(0)


INSIDE = """popup => {
  const box = popup.getBoundingClientRect();
  if (box.left < 0 || box.top < 0 || box.right > innerWidth || box.bottom > innerHeight) return 'outside of the screen';
  for (const x of [4, box.width / 2, box.width - 4])
    for (const y of [4, box.height / 2, box.height - 4])
      if (!popup.contains(document.elementFromPoint(box.left + x, box.top + y))) return `covered at ${x}, ${y}`;
  return '';
}"""
"""What is wrong with the place of something that floats."""


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_why_and_menus_float_above_everything_and_move_nothing(visitor: User, filled: Filled, width: int) -> None:
    gateway, page = filled.gateway, visitor.page
    board = new_board(gateway, f"float-{width}", paused=True)
    for number in range(12):
        new_card(gateway, board, f"Card number {number}")
    page.set_viewport_size({"width": width, "height": 844 if width == 390 else 768})
    visitor.open(f"/board/{board}")
    cards = page.locator("[data-card]")
    expect(cards.first).to_contain_text("Board paused by you")
    places = "all => all.map((one) => Math.round(one.getBoundingClientRect().top))"
    before = cards.evaluate_all(places)
    shown = cards.filter(visible=True)
    shown.nth(3).get_by_role("button", name="Why?").click()
    why = page.get_by_role("dialog", name="Why")
    expect(why).to_contain_text("paused")
    assert why.evaluate(INSIDE) == ""
    assert cards.evaluate_all(places) == before
    page.keyboard.press("Escape")
    expect(why).to_have_count(0)
    shown.nth(1).hover()
    shown.nth(1).get_by_role("button", name=re.compile("^Menu of HF-")).click()
    menu = page.get_by_role("menu")
    expect(menu).to_be_visible()
    under = """menu => {
      const box = menu.getBoundingClientRect();
      return [...document.querySelectorAll('[data-card] button')].filter((one) => {
        const at = one.getBoundingClientRect(), x = at.left + at.width / 2, y = at.top + at.height / 2;
        const covers = x > box.left && x < box.right && y > box.top && y < box.bottom;
        return covers && !menu.contains(document.elementFromPoint(x, y));
      }).length;
    }"""
    assert menu.evaluate(under) == 0  # no dots of another card through it
    assert cards.evaluate_all(places) == before


def test_toasts_cover_neither_the_composer_nor_answers_on_a_phone(browser: Browser, filled: Filled) -> None:
    with User(browser, filled.gateway, viewport=PHONE, has_touch=True) as user:
        page = user.page
        user.begin("careful")
        user.send("sh echo asks first")
        answers = page.get_by_role("group", name="Approval").get_by_role("button", name="Allow once")
        expect(answers).to_be_visible()
        for number in range(3):
            filled.gateway.command("POST", "/v1/tasks", {"shell": "exit 3", "name": f"failure {number}"})
        toasts = page.locator("[data-toast]")
        expect(toasts).to_have_count(3)
        covered = """() => {
          const boxes = [...document.querySelectorAll('[data-toast]')].map((one) => one.getBoundingClientRect());
          return [...document.querySelectorAll('[data-composer] button, [data-composer] textarea, [role=group] button')]
            .filter((one) => {
              const at = one.getBoundingClientRect();
              return boxes.some((box) => Math.max(at.left, box.left) < Math.min(at.right, box.right)
                && Math.max(at.top, box.top) < Math.min(at.bottom, box.bottom));
            }).map((one) => one.textContent || one.ariaLabel);
        }"""
        user.until(lambda: page.evaluate(covered) == [], "nothing that is pressed is covered")
        answers.click()
        user.finished(1)
        user.open("/settings/devices")
        page.get_by_role("button", name="Add a device…").click()
        sheet = page.get_by_role("dialog", name="Add a device")
        expect(sheet).to_be_visible()
        filled.gateway.command("POST", "/v1/tasks", {"shell": "exit 3", "name": "another failure"})
        expect(toasts).to_have_count(1)
        over = "([sheet, toast]) => toast.getBoundingClientRect().bottom > sheet.getBoundingClientRect().top"
        user.until(
            lambda: not page.evaluate(over, [sheet.element_handle(), toasts.element_handle()]),
            "it stands above the sheet",
        )


def test_the_drawer_of_a_card_does_not_hide_the_card(visitor: User, filled: Filled) -> None:
    gateway, page = filled.gateway, visitor.page
    board = new_board(gateway, "beside", paused=True)
    for column in ("triage", "ready", "blocked", "review", "done"):
        id = new_card(gateway, board, f"In {column}", triage=column == "triage")
        if column == "blocked":
            gateway.command("POST", f"/v1/cards/{id}/block", {"reason": "why not", "kind": "capability"})
        elif column == "review":
            gateway.command("POST", f"/v1/cards/{id}/move", {"status": "review"})
        elif column == "done":
            gateway.command("POST", f"/v1/cards/{id}/complete", {"summary": "it is"})
    page.set_viewport_size({"width": 1024, "height": 768})
    visitor.open(f"/board/{board}")
    cards = page.locator("[data-card]")
    expect(cards.nth(2)).to_be_visible()  # the other columns are folded, once the page knows its width
    cards.last.get_by_role("link").first.click()
    chosen = page.locator("[data-selected]")
    title = chosen.locator("[data-title]").inner_text()
    expect(page.get_by_role("complementary", name=re.compile("^Card HF-"))).to_contain_text(title)
    visitor.until(lambda: chosen.evaluate(INSIDE) == "", "all of the card is seen")
    ends = page.locator("[data-column]", has=chosen).bounding_box(), page.locator("aside:visible").last.bounding_box()
    assert ends[0] and ends[1] and ends[0]["x"] + ends[0]["width"] <= ends[1]["x"] + 1, (
        ends
    )  # nor the edge of its column
