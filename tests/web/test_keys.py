"""By keyboard and by thumb: edit what is queued, ask why, search the conversation, the sheet of keys, the drawer."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from tests.e2e.gateway import GatewayProcess
from tests.web.board import new_board, new_card
from tests.web.checks import loaded
from tests.web.user import User


def test_arrow_up_in_an_empty_field_edits_the_last_queued(guest: User) -> None:
    guest.begin()
    guest.send("slow 600 a long one that takes its time" + " and more" * 500)
    guest.sees("a long")
    guest.send("say first")
    guest.send("say second")
    queued = guest.page.get_by_role("list", name="Queued messages").get_by_role("listitem")
    expect(queued).to_have_count(2)
    box = guest.page.get_by_label("Message", exact=True)
    box.press("ArrowUp")
    field = guest.page.get_by_label("Queued message", exact=True)
    expect(field).to_be_focused()
    expect(field).to_have_value("say second")
    field.fill("say better")
    field.press("Enter")
    expect(queued.nth(1)).to_contain_text("say better")
    expect(box).to_be_focused()
    box.press("ArrowUp")
    expect(field).to_have_value("say better")
    field.press("Escape")
    expect(field).to_have_count(0)
    box.fill("something")
    box.press("ArrowUp")
    expect(field).to_have_count(0)  # the field is not empty: the arrow is the field's own
    guest.gateway.command("POST", f"/v1/sessions/{guest.session}/stop")


def test_y_says_why_of_what_has_the_focus(guest: User) -> None:
    task = guest.gateway.command("POST", "/v1/tasks", {"shell": "exit 7", "name": "it fails"})["task"]
    guest.gateway.until_ended(task)
    guest.open("/tasks")
    link = guest.page.get_by_role("link", name="it fails").first
    link.focus()
    guest.page.keyboard.press("y")
    why = guest.page.get_by_role("dialog", name="Why")
    expect(why).to_contain_text("The task failed")
    guest.page.keyboard.press("Escape")
    expect(why).to_have_count(0)
    expect(link).to_be_focused()
    guest.begin()
    guest.page.locator("h1").first.click()
    guest.page.keyboard.press("y")  # nothing has the focus: the page is meant
    expect(why).to_contain_text("session event")
    guest.page.keyboard.press("Escape")
    guest.send("slow 60 one two three four five six")
    guest.sees("one")
    guest.page.locator("h1").first.click()
    guest.page.keyboard.press("y")
    expect(why).to_contain_text("model demo is answering")
    guest.gateway.command("POST", f"/v1/sessions/{guest.session}/stop")


def test_a_menu_by_keyboard_begins_at_its_first_item(guest: User) -> None:
    guest.begin()
    page = guest.page
    button = page.get_by_role("region", name="Conversation").get_by_role("button", name="Session menu")
    items = page.get_by_role("menuitem")
    for key, place in (("Enter", 0), ("Space", 0), ("ArrowDown", 0), ("ArrowUp", -1)):
        button.focus()
        page.keyboard.press(key)
        expect(items.nth(place)).to_be_focused()
        page.keyboard.press("Escape")
        expect(items).to_have_count(0)
        expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(items.first).to_be_focused()
    for key, place in (("ArrowDown", 1), ("End", -1), ("ArrowDown", 0), ("ArrowUp", -1), ("Home", 0)):
        page.keyboard.press(key)
        expect(items.nth(place)).to_be_focused()
    page.keyboard.press("Tab")
    expect(items).to_have_count(0)
    expect(page.get_by_role("log")).to_be_focused()  # what comes after the button
    button.focus()
    page.keyboard.press("Enter")
    expect(items.first).to_be_focused()
    page.keyboard.press("Enter")  # the item itself
    expect(page.get_by_role("dialog", name="Rename the session")).to_be_visible()


def test_a_hit_in_the_open_session_is_gone_to(guest: User) -> None:
    guest.begin()
    for number in range(3):
        guest.send(f"say the zebra number {number}\n" + "say more\n" * 40)
        guest.finished(number + 1)
    guest.page.get_by_label("Search titles and text").fill("zebra number 0")
    hits = guest.page.locator(f'a[data-row-link][href^="/s/{guest.session}#"]')
    for _ in range(2):  # and again
        guest.watch_marks()
        hits.first.click()
        guest.saw_mark("zebra number 0")
        expect(guest.page.locator("article[data-kind]", has_text="zebra number 0").first).to_be_in_viewport()


def test_ctrl_f_searches_all_of_the_conversation(guest: User) -> None:
    guest.begin()
    client = guest.gateway.client
    for number in range(24):
        text = "say the needle is here" if number == 1 else f"say straw {number}"
        client.post(f"/v1/sessions/{guest.session}/messages", json={"text": text})
    guest.until(lambda: guest.gateway.session(guest.session)["state"] == "idle", "all is said")
    guest.sees("straw 23")
    log = guest.page.get_by_role("log")
    expect(log).not_to_contain_text("needle")  # it is not rendered
    guest.page.keyboard.press("Control+f")
    field = guest.page.get_by_role("searchbox", name="Search in this conversation")
    expect(field).to_be_focused()
    expect(guest.page.get_by_role("search")).to_contain_text("covers only what is on the screen")
    field.fill("NEEDLE")
    expect(guest.page.get_by_role("search")).to_contain_text("2 found")
    field.press("Enter")
    expect(log).to_contain_text("the needle is here")
    expect(guest.page.get_by_role("search")).to_contain_text("1 of 2")
    expect(field).to_be_focused()
    guest.page.wait_for_function("CSS.highlights.get('found')?.size >= 2")
    prevented = (
        "new Promise(done => document.addEventListener('keydown', e => setTimeout(() => done(e.defaultPrevented))))"
    )
    guest.page.evaluate(f"void (window.second = {prevented})")
    field.press("Control+f")
    assert guest.page.evaluate("window.second") is False  # the browser's own opens
    field.press("Escape")
    expect(field).to_have_count(0)
    guest.until(lambda: not guest.page.evaluate("CSS.highlights.has('found')"), "nothing is marked any more")


def test_the_sheet_of_keys_and_letters_turned_off(guest: User) -> None:
    guest.open("/home")
    expect(guest.page.get_by_role("heading", name="Home")).to_be_visible()
    guest.page.keyboard.press("?")
    sheet = guest.page.get_by_role("dialog", name="All keys")
    expect(sheet).to_contain_text("edit the last queued message")
    guest.page.keyboard.press("t")  # what lies over the page has the keys
    expect(guest.page.get_by_role("complementary", name="Background tasks")).to_have_count(0)
    sheet.get_by_role("checkbox").uncheck()
    guest.page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    guest.page.keyboard.press("t")
    guest.page.wait_for_timeout(200)
    assert guest.page.get_by_role("complementary", name="Background tasks").count() == 0


def test_letters_in_an_output_are_the_outputs_own(guest: User) -> None:
    task = guest.gateway.command("POST", "/v1/tasks", {"shell": "seq 1 300"})["task"]
    guest.gateway.until_ended(task)
    guest.open(f"/tasks/{task}")
    output = guest.page.get_by_role("region", name="Output of")
    expect(output).to_contain_text("300")
    before = len(guest.gateway.get("/v1/sessions")["sessions"])
    guest.page.get_by_label("Search the output").fill("29")
    expect(guest.page.get_by_role("status").filter(has_text="1 of")).to_be_visible()
    output.focus()
    guest.page.keyboard.press("n")
    expect(guest.page.get_by_role("status").filter(has_text="2 of")).to_be_visible()
    guest.page.keyboard.press("g")
    guest.page.keyboard.press("t")
    guest.page.wait_for_timeout(200)
    assert guest.page.url.endswith(task)
    assert len(guest.gateway.get("/v1/sessions")["sessions"]) == before  # `n` began no session


def stroke(page: Page, start: tuple[int, int], end: tuple[int, int]) -> None:
    """A finger on the glass."""
    touch = page.context.new_cdp_session(page)
    at = [{"x": start[0], "y": start[1]}]
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": at})
    for step in range(1, 6):
        x, y = (a + (b - a) * step / 5 for a, b in zip(start, end, strict=True))
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_a_swipe_opens_and_closes_the_drawer(browser: Browser, shared: GatewayProcess) -> None:
    with User(browser, shared, viewport={"width": 390, "height": 844}, has_touch=True) as user:
        user.open("/home")
        expect(user.page.get_by_role("heading", name="Home")).to_be_visible()
        drawer = user.page.get_by_role("complementary", name="Background tasks")
        stroke(user.page, (200, 500), (60, 500))
        user.page.wait_for_timeout(100)
        assert drawer.count() == 0  # in the middle it means nothing
        stroke(user.page, (384, 500), (200, 505))
        expect(drawer).to_be_visible()
        stroke(user.page, (60, 500), (300, 505))
        expect(drawer).to_have_count(0)
        stroke(user.page, (200, 20), (60, 22))
        expect(drawer).to_be_visible()
        stroke(user.page, (200, 20), (205, 300))
        expect(drawer).to_have_count(0)


def test_j_and_k_go_through_the_rows_of_every_list(guest: User) -> None:
    gateway, page = guest.gateway, guest.page
    board = new_board(gateway, "rows", paused=True)
    for number in range(2):
        gateway.until_rest(gateway.create(f"fail\nsay {number}"))
        gateway.until_ended(str(gateway.command("POST", "/v1/tasks", {"shell": "true"})["task"]))
        new_card(gateway, board, f"Card {number}")
    place = "document.activeElement.closest('a')?.href ?? ''"
    for path in ("/home", "/s", "/tasks", f"/board/{board}"):
        guest.open(path)
        loaded(page)
        page.locator("[data-why] a:visible").nth(1).wait_for()
        page.keyboard.press("j")
        first = page.evaluate(place)
        page.keyboard.press("j")
        second = page.evaluate(place)
        page.keyboard.press("k")
        assert first and second and first != second, path
        assert page.evaluate(place) == first, path
    guest.open("/settings/about")
    loaded(page)
    page.keyboard.press("t")
    drawer = page.get_by_role("complementary", name="Background tasks")
    expect(drawer.locator("[data-why]").first).to_be_visible()
    page.keyboard.press("j")
    expect(drawer.locator("a:focus")).to_have_count(1)
