"""The chat: by keyboard, in the words of the log, with what people expect of one."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Locator, Route, expect

from tests.e2e.gateway import GatewayProcess, wait_for
from tests.web.checks import check_axe, check_keyboard, layout_faults
from tests.web.user import User

TABLE = "\n".join(
    ["say | a column with a long name | another one | and a third of them |", "say | --- | --- | --- |"]
    + [f"say | {'unbreakable' * 4} | {'words' * 8} | {'here' * 9} |"] * 2
)

TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""What was drawn is measured, and its place is corrected."""


def entries(user: User, kind: str = "") -> Locator:
    """What stands in the conversation, by the kind of item."""
    return user.page.get_by_role("log").locator(f'article[data-kind="{kind}"]' if kind else "article[data-kind]")


def list_of(user: User) -> Locator:
    return user.page.get_by_role("complementary", name="Sessions")


def test_the_list_by_keyboard_with_filters_unread_and_many_at_once(guest: User) -> None:
    gateway, page = guest.gateway, guest.page
    for number in range(3):
        gateway.until_rest(gateway.create(f"say **number** {number}"))
    background = gateway.command("POST", "/v1/tasks/agents", {"prompt": "say from the background"})["session"]
    gateway.until_rest(background)
    guest.open("/s")
    rows = list_of(guest).get_by_role("link")
    expect(rows.first).to_be_visible()
    expect(list_of(guest)).to_contain_text("number 2")
    expect(list_of(guest)).not_to_contain_text("**")
    page.get_by_label("Search titles and text").focus()
    for _ in range(9):  # past the filters
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('a[href^=\"/s/\"]')"):
            break
    expect(rows.first).to_be_focused()
    assert page.evaluate("document.activeElement.getClientRects().length") == 1  # it can be seen
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(rows.first).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    wanted = rows.nth(1).get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{wanted}")
    filters = list_of(guest).get_by_role("group", name="Which sessions")
    expect(filters.get_by_role("button", name=re.compile(r"^Mine ?, \d+ unread"))).to_be_visible()
    filters.get_by_role("button", name=re.compile("^Background")).click()
    expect(list_of(guest)).not_to_contain_text("number 0")
    expect(rows.first).to_contain_text("from the background")
    filters.get_by_role("button", name=re.compile("^Mine")).click()
    expect(list_of(guest)).to_contain_text("number 0")
    expect(list_of(guest)).not_to_contain_text("from the background")
    list_of(guest).get_by_role("button", name="Select").click()
    boxes = list_of(guest).get_by_role("checkbox")
    unread = list_of(guest).locator("label", has_text="unread").first
    right = "row => [row.querySelector('time'), row.lastChild].map((one) => one.getBoundingClientRect().right)"
    of_time, of_count = unread.evaluate(right)
    assert abs(of_time - of_count) < 2  # how many are unread stands below the time, not below the box
    for number in (0, 1):
        boxes.nth(number).check()
    list_of(guest).get_by_role("button", name="Archive 2").click()
    expect(boxes).to_have_count(0)
    guest.until(lambda: gateway.get("/v1/status")["archived"] >= 2, "two are archived")
    list_of(guest).get_by_role("button", name="Archived").click()
    list_of(guest).get_by_role("button", name="Select").click()
    for number in (0, 1):
        boxes.nth(number).check()
    list_of(guest).get_by_role("button", name="Delete 2").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 2 sessions").click()
    expect(list_of(guest)).to_contain_text(re.compile("Nothing is archived|There are no archived"))
    assert gateway.get("/v1/sessions", archived="true")["sessions"] == []


def test_empty_filter_says_of_which_kind_there_is_none_and_offers_the_others(user: User) -> None:
    gateway, page = user.gateway, user.page
    user.open("/s")
    expect(list_of(user)).to_contain_text("No session yet")
    background = gateway.command("POST", "/v1/tasks/agents", {"prompt": "say kelp"})["session"]
    gateway.until_rest(background)
    expect(list_of(user)).to_contain_text("There are no sessions of your own")
    expect(list_of(user)).not_to_contain_text("No session yet")
    filters = list_of(user).get_by_role("group", name="Which sessions")
    filters.get_by_role("button", name=re.compile("^Workers")).click()
    expect(list_of(user)).to_contain_text("There are no sessions of workers on the board")
    list_of(user).get_by_role("button", name="Show Background").click()
    expect(list_of(user).get_by_role("link")).to_contain_text("kelp")
    filters.get_by_role("button", name=re.compile("^Mine")).click()
    page.get_by_label("Search titles and text").fill("no such word")
    expect(list_of(user)).to_contain_text("Nothing found")
    page.get_by_label("Search titles and text").fill("")
    gateway.command("POST", f"/v1/sessions/{background}/archive", {})
    expect(list_of(user)).to_contain_text("No session yet")
    list_of(user).get_by_role("button", name="Archived").click()
    expect(list_of(user)).to_contain_text("There are no archived sessions of your own")
    list_of(user).get_by_role("button", name="Show Background").click()
    expect(list_of(user).get_by_role("link")).to_contain_text("kelp")


def test_what_is_stopped_says_so_and_begins_nothing_again(guest: User) -> None:
    guest.begin()
    guest.send("slow 600 " + "one two " * 1000)
    guest.sees("one two")
    guest.page.get_by_role("button", name="Stop the turn").click()
    guest.finished(1)
    expect(entries(guest, "end")).to_contain_text("stopped by you")
    expect(guest.page.get_by_role("log")).not_to_contain_text(re.compile("starts over|begins again"))


def test_an_open_question_is_answered_in_the_composer_and_read_as_markdown(guest: User) -> None:
    guest.begin()
    guest.send('call question {"text": "Use **both** cookies?\\n\\n- for `30` days\\n- or once", "choices": []}')
    card = guest.page.get_by_role("group", name="Question")
    expect(card.locator("strong", has_text="both")).to_be_visible()
    expect(card.locator("li")).to_have_count(2)
    expect(list_of(guest).locator("[aria-current]")).to_contain_text("Waiting: Use both cookies?")
    guest.send("both, for 30 days")
    guest.finished(1)
    (answered,) = guest.events("WaitAnswered")
    assert answered["answer"] == "both, for 30 days"
    assert len(guest.events("InputReceived")) == 1  # it became no message


def test_an_approval_says_who_asks_where_and_text_asks_which(guest: User) -> None:
    guest.begin("careful")
    guest.send("sh echo hello")
    card = guest.page.get_by_role("group", name="Approval")
    for fact in ("careful", "demo", guest.gateway.session(guest.session)["cwd"]):
        expect(card).to_contain_text(fact)
    guest.open("/home")
    on_home = guest.page.get_by_role("region", name="Needs you").locator(f"[data-why='session/{guest.session}']")
    for fact in ("careful · demo", guest.gateway.session(guest.session)["cwd"]):
        expect(on_home).to_contain_text(fact)
    guest.open(f"/s/{guest.session}")
    box = guest.page.get_by_label("Message", exact=True)
    box.fill("use printf instead")
    box.press("Enter")
    expect(box).to_have_value("use printf instead")  # nothing is sent before it is clear as what
    guest.page.get_by_role("button", name="Refuse and say this").click()
    guest.finished(1)
    (answered,) = guest.events("WaitAnswered")
    assert (answered["answer"], answered["note"]) == ("deny", "use printf instead")


def test_markdown_has_tables_that_scroll_code_in_colours_and_its_own_direction(guest: User) -> None:
    guest.begin()
    code = "say ```python\nsay def hello(name):  # greets\nsay     return name\nsay ```"
    diff = "say ```diff\nsay - old\nsay + new\nsay ```"
    guest.send(f"{TABLE}\nsay ## مرحبا بالعالم\n{code}\n{diff}")
    guest.finished(1)
    answer = entries(guest, "step").last
    block = answer.get_by_role("group", name="Code, python")
    expect(block.locator("[data-token]").first).to_be_visible()
    expect(block.get_by_role("button", name="Copy")).to_be_visible()
    changed = answer.get_by_role("group", name="Code, diff")
    expect(changed.locator('[data-line="added"]')).to_have_text("+ new")
    expect(changed.locator('[data-line="removed"]')).to_have_text("- old")
    table = answer.locator("table")
    expect(table.locator("tr")).to_have_count(3)
    widths = table.evaluate(
        "table => [table.scrollWidth, table.parentElement.clientWidth, table.rows[1].cells[0].clientHeight]"
    )
    assert widths[0] > widths[1], widths  # it scrolls, and no word is split
    assert widths[2] < 60, widths
    assert answer.evaluate("node => node.scrollWidth <= node.clientWidth + 1")
    expect(answer.get_by_role("heading", name="مرحبا")).to_have_css("direction", "rtl")


def test_long_word_of_a_table_stays_in_its_cell_and_numbers_stand_right(guest: User) -> None:
    guest.begin()
    guest.send(f"say | name | n |\nsay | --- | --: |\nsay | {'word_' * 20} | 7 |\nsay | b | 1,234,567 |")
    guest.finished(1)
    cells = entries(guest, "step").last.locator("tbody td")
    expect(cells).to_have_count(4)
    ends = cells.evaluate_all("""(cells) => cells.map((cell) => {
      const text = document.createRange();
      text.selectNodeContents(cell);
      return [text.getBoundingClientRect().right, cell.getBoundingClientRect().right].map(Math.round);
    })""")
    assert all(text <= cell for text, cell in ends), ends
    assert ends[1][1] - ends[1][0] < 12, ends  # the 7 stands below the other number's end


def test_a_message_is_copied_edited_sent_again_and_forked(guest: User) -> None:
    guest.context.grant_permissions(["clipboard-read", "clipboard-write"])
    guest.begin()
    guest.send("say first words")
    guest.finished(1)
    mine = entries(guest, "person").first
    mine.hover()
    mine.get_by_role("button", name="Copy the message").click()
    copied = "navigator.clipboard.readText()"
    guest.until(lambda: guest.page.evaluate(copied) == "say first words", "it is copied")
    mine.get_by_role("button", name="Edit and send again").click()
    field = guest.page.get_by_label("Edited message")
    expect(field).to_be_focused()
    field.fill("say better words")
    guest.page.get_by_role("button", name="Send again", exact=True).click()
    guest.finished(2)
    guest.sees("better words")
    assert [event["turn"] for event in guest.events("TurnUndone")] == [1]
    guest.page.get_by_role("button", name="Answer again").last.click()
    guest.finished(3)
    assert [event["text"] for event in guest.events("InputReceived")] == [
        "say first words",
        "say better words",
        "say better words",
    ]
    before = guest.page.url
    entries(guest, "person").last.hover()
    entries(guest, "person").last.get_by_role("button", name="Fork from here").click()
    guest.page.wait_for_url(lambda url: url != before)
    expect(guest.page.get_by_role("heading", level=1)).to_contain_text("(fork)")


def test_a_running_command_shows_its_last_lines_its_exit_code_and_its_colours(guest: User) -> None:
    guest.begin()
    script = "printf '\\033[31mred\\033[0m\\n'; for i in $(seq 1 3000); do echo tick $i; sleep 0.2; done"
    guest.send(f"think 0.05 let me see\nsh {script}")
    card = guest.page.get_by_role("group", name=re.compile("^Call of terminal"))
    expect(card).to_contain_text("tick 3")  # while it runs
    expect(guest.page.get_by_role("log")).to_contain_text(re.compile(r"Thought for \d"))
    guest.page.get_by_role("button", name="Stop the turn").click()
    guest.finished(1)
    guest.send("sh printf '\\033[31mred\\033[0m\\n'; exit 3")
    guest.finished(2)
    failed = guest.page.get_by_role("group", name=re.compile("^Call of terminal")).last
    expect(failed).to_contain_text("exit code 3")
    colour = "node => [getComputedStyle(node).color, getComputedStyle(node.parentElement).color]"
    red, usual = failed.get_by_text("red", exact=True).last.evaluate(colour)
    assert red != usual
    guest.send("sh true")
    guest.finished(3)
    expect(guest.page.get_by_role("group", name=re.compile("^Call of terminal")).last).to_contain_text("exit code 0")


def test_what_was_sent_to_the_background_leaves_a_trace(guest: User) -> None:
    guest.begin()
    guest.send("say hello")
    guest.finished(1)
    box = guest.page.get_by_label("Message", exact=True)
    gate = guest.gateway.home.parent / f"{guest.session}.gate"
    box.fill(f"sh {wait_for(gate)}")
    box.press("Control+Enter")
    trace = entries(guest, "background")
    expect(trace).to_contain_text("seq 9999")
    expect(trace).to_contain_text("Working")
    gate.touch()
    expect(trace).to_contain_text("Done")
    expect(trace.get_by_role("link", name="Open task")).to_be_visible()
    guest.gateway.until_event(guest.session, "NoteReceived")
    guest.gateway.until_rest(guest.session)
    expect(trace).to_have_count(1)  # the note of its end stands for it
    expect(entries(guest, "note")).to_have_count(0)
    expect(trace).to_contain_text("Done")


def test_a_new_session_is_asked_for_profile_model_and_directory(guest: User) -> None:
    work = guest.gateway.home.parent / "work"
    work.mkdir(exist_ok=True)
    guest.open("/s")
    guest.page.get_by_role("button", name="New session").first.click()
    guest.page.wait_for_url("**/new")
    usual = str(guest.gateway.get("/v1/profiles")["cwd"])
    expect(guest.page.get_by_label("Directory")).to_have_attribute("placeholder", usual)
    expect(guest.page.get_by_label("Model")).to_have_attribute("placeholder", re.compile("^demo"))
    guest.page.get_by_role("combobox", name=re.compile("^Profile")).select_option("careful")
    expect(guest.page.get_by_role("main")).to_contain_text("It asks before: terminal.")
    guest.page.get_by_label("Directory").fill(str(work))
    guest.send("say hello")
    guest.page.wait_for_url("**/s/*")
    guest.sees("hello")
    session = guest.gateway.session(guest.page.url.rsplit("/", 1)[1].partition("#")[0])
    assert (session["profile"], session["cwd"]) == ("careful", str(work))
    about = guest.page.get_by_role("region", name="Conversation")
    for fact in ("careful", "demo", "asks first", work.name):
        expect(about).to_contain_text(fact)
    guest.open("/new")
    guest.page.get_by_label("Directory").fill("/nowhere/at/all")
    guest.send("say hello")
    expect(guest.page.get_by_role("alert")).to_contain_text("/nowhere/at/all")
    expect(guest.page.get_by_label("Message", exact=True)).to_have_value("say hello")  # nothing is lost


def test_the_agent_of_a_session_is_shown_and_changed(guest: User) -> None:
    guest.begin("careful")
    page = guest.page
    page.get_by_role("button", name=re.compile("careful.*asks first")).click()
    dialog = page.get_by_role("dialog", name="Agent of this session")
    expect(dialog).to_contain_text("asks before: terminal")
    expect(dialog).to_contain_text(str(guest.gateway.session(guest.session)["cwd"]))
    change = dialog.get_by_role("button", name="Change the agent")
    expect(change).to_be_disabled()
    dialog.get_by_label("Model").fill("nobody:knows-it")
    change.click()
    expect(dialog.get_by_role("alert")).to_contain_text("nobody")  # and nothing was changed
    assert guest.events("AgentChosen") == []
    dialog.get_by_role("combobox", name=re.compile("^Profile")).select_option("demo")
    expect(dialog).to_contain_text("Allowed without asking: terminal")
    assert check_axe(page) == []
    change.click()
    expect(dialog).to_have_count(0)
    (chosen,) = guest.events("AgentChosen")
    assert (chosen["profile"], chosen["model"]) == ("demo", "")
    guest.send("sh echo without a question")
    guest.finished(1)
    page.set_viewport_size({"width": 390, "height": 844})  # here the bar has no room for it
    page.get_by_role("button", name=re.compile("^Session menu")).last.click()
    page.get_by_role("menuitem", name="Agent…").click()
    expect(dialog.get_by_role("combobox", name=re.compile("^Profile"))).to_have_value("demo")


def test_what_happened_while_away_stands_below_the_splice(browser: Browser, shared: GatewayProcess) -> None:
    with User(browser, shared) as user:
        user.begin()
        user.send("say hello")
        user.finished(1)
        user.sees("hello")
        seen = len(user.events())
        cursors = "fetch('/v1/devices/me').then(a => a.json()).then(mine => mine.cursors)"
        user.until(lambda: user.page.evaluate(cursors).get(user.session) == seen, "it was read")
        user.open("/home")  # it is not looked at any more
        shared.command("POST", "/v1/tasks", {"argv": ["false"], "name": "it breaks", "session": user.session})
        shared.until_event(user.session, "NoteReceived")
        shared.send(user.session, "say while away")
        user.finished(2)
        user.open(f"/s/{user.session}")
        splice = entries(user, "splice")
        expect(splice).to_contain_text("Received while away")
        rows = "all => all.map((one) => [one.dataset.kind, one.textContent])"

        def below() -> str:
            shown = entries(user).evaluate_all(rows)
            at = [kind for kind, _ in shown].index("splice")
            return "".join(text for _, text in shown[at + 1 : at + 2])

        user.until(lambda: "it breaks" in below(), "what was missed first stands first")
        times = re.findall(r"\d\d:\d\d", splice.inner_text())
        assert len(times) in (1, 2) and times == sorted(times)  # one where both are the same minute
        looked = user.page.evaluate(f"fetch('/v1/sessions/{user.session}/away?after=1').then(a => a.json())")
        assert looked["looked_at"] > 0


def test_who_scrolls_up_while_the_conversation_grows_stays_there(guest: User) -> None:
    guest.begin()
    guest.send("\n".join(f"say line {number}\nsay ---" for number in range(60)))
    guest.finished(1)
    log = guest.page.get_by_role("log")
    expect(guest.page.get_by_role("button", name="To the end")).to_be_hidden()
    expect(log).to_contain_text("line 59")
    places = log.evaluate("""async (log) => {
      const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const last = [...log.querySelectorAll("article")].at(-1);
      last.style.minHeight = "300px";
      await frame();
      const left = log.scrollHeight - log.scrollTop - log.clientHeight;  // it stays at the end while nobody scrolls
      last.style.minHeight = "600px";
      log.scrollTop = 0;
      await frame();
      return [left, log.scrollTop];
    }""")
    assert places == [0, 0]


def test_away_begins_with_the_last_look_at_this_session(guest: User) -> None:
    """Not with the moment in which some other page of this browser was left."""
    guest.begin()
    guest.send("say hello")
    guest.finished(1)
    guest.sees("hello")
    seen = len(guest.events())
    cursors = "fetch('/v1/devices/me').then(a => a.json()).then(mine => mine.cursors)"
    guest.until(lambda: guest.page.evaluate(cursors).get(guest.session) == seen, "it was read")
    guest.open("/home")
    guest.gateway.send(guest.session, "say while away")
    guest.finished(2)
    hour = 3_600_000
    looked: list[int] = []

    def earlier(route: Route) -> None:
        said = route.fetch().json()
        looked.append(said["looked_at"] - hour)
        route.fulfill(json=said | {"looked_at": looked[-1]})

    guest.page.route("**/away?*", earlier)
    guest.open(f"/s/{guest.session}")
    expect(guest.page.locator('[data-banner="away"]')).to_contain_text(re.compile(r"1 h \d+ min"))
    clock = guest.page.evaluate("at => new Date(at).toTimeString().slice(0, 5)", looked[-1])
    expect(entries(guest, "splice")).to_contain_text(f"{clock} ")  # after midnight its day stands before it


def test_queue_is_as_wide_as_the_composer_on_a_phone(guest: User) -> None:
    guest.begin()
    guest.send("slow 600 one two three")
    expect(guest.page.get_by_role("button", name="Stop the turn")).to_be_visible()
    guest.send("say next")
    guest.page.set_viewport_size({"width": 390, "height": 844})
    queue = guest.page.get_by_role("list", name="Queued messages")
    expect(queue).to_be_visible()
    field = guest.page.get_by_label("Message", exact=True).locator("..")
    edges = "one => [one.getBoundingClientRect().left, one.getBoundingClientRect().right]"
    assert queue.evaluate(edges) == field.evaluate(edges)


def test_the_chat_fits_every_width_and_the_keyboard_reaches_all_of_it(browser: Browser, shared: GatewayProcess) -> None:
    with User(browser, shared) as user:
        user.begin("careful")
        user.send(f"say # A title\n{TABLE}\nsay ```python\nsay print(1)\nsay ```\nsh echo waits")
        expect(user.page.get_by_role("group", name="Approval")).to_be_visible()
        faults = layout_faults(user, f"/s/{user.session}", "[role=group][aria-label=Table]")  # Markdown is loaded apart
        expect(user.page.get_by_role("group", name="Approval")).to_be_visible()
        faults += check_keyboard(user.page) + check_axe(user.page)
        faults += layout_faults(user, "/new", "main select")
        user.page.get_by_role("button", name="Skip to the content").focus()  # from the top
        faults += check_keyboard(user.page) + check_axe(user.page)
        assert faults == []


def test_focus_stays_in_view_among_messages_of_any_height_and_is_not_lost(guest: User) -> None:
    guest.begin()
    page = guest.page
    for number in range(10):
        guest.send(f"say # Answer {number}\n{TABLE}\nsay\nsay {'some words ' * 200}")
        guest.finished(number + 1)
    page.get_by_role("log").evaluate("box => { box.scrollTop = 0 }")
    expect(page.get_by_role("group", name="Table").first).to_be_visible()
    page.get_by_role("button", name="To the end").click()
    page.set_viewport_size({"width": 390, "height": 844})  # nothing is as high as it was measured
    page.get_by_role("log").focus()
    first = entries(guest).first.evaluate("entry => entry.closest('[data-index]').dataset.index")
    page.keyboard.press("Tab")  # to the first message in view, not to the first that is drawn
    focused = page.evaluate("document.activeElement.closest('[data-index]').dataset.index")
    assert int(focused) > int(first)
    for key in ["Shift+Tab"] * 30 + ["Tab"] * 25:
        page.evaluate(TWO_FRAMES)
        expect(page.locator(":focus")).to_be_in_viewport(timeout=1)
        page.keyboard.press(key)
    mine = page.get_by_role("button", name="Copy the message").first
    mine.focus()
    page.get_by_role("log").evaluate("box => { box.scrollTop = box.scrollHeight }")
    expect(mine).not_to_be_focused()  # it is no longer drawn
    expect(page.get_by_role("log")).to_be_focused()


def test_the_mode_is_chosen_at_the_start_shown_in_the_chat_and_changed_there(guest: User) -> None:
    page = guest.page
    guest.open("/new")
    page.get_by_role("combobox", name=re.compile(r"^Mode\b")).select_option("read")
    guest.send("sh echo never")
    bar = page.get_by_role("button", name="read only")
    expect(bar).to_be_visible()
    page.wait_for_url("**/s/*")
    guest.gateway.until_rest(page.url.rsplit("/", 1)[1].partition("#")[0])
    expect(page.get_by_placeholder("read only")).to_be_visible()
    bar.click()
    dialog = page.get_by_role("dialog", name="Agent of this session")
    dialog.get_by_role("combobox", name=re.compile(r"^Mode\b")).select_option("ask")
    assert check_axe(page) == []
    dialog.get_by_role("button", name="Change the agent").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="asking before every change")).to_be_visible()
    expect(page.get_by_text("The mode was changed by you")).to_be_visible()
    guest.send("sh echo asked")
    expect(page.get_by_role("button", name="Allow", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="The rule always")).to_have_count(0)
