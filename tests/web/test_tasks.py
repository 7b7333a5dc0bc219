"""The pages of tasks: what is said is known, what is offered can be done, all of an output is found."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.e2e.gateway import GatewayProcess, until
from tests.web.checks import check_axe, check_keyboard, check_layout, layout_faults
from tests.web.user import User

LONG_NAME = "git bisect run bench/checkout.sh --profile release --case 4711"


def run(gateway: GatewayProcess, shell: str, name: str = "", **more: object) -> str:
    """A command that has ended."""
    body = {"shell": shell} | ({"name": name} if name else {}) | more
    task = str(gateway.command("POST", "/v1/tasks", body)["task"])
    gateway.until_ended(task)
    return task


def start(gateway: GatewayProcess, shell: str, name: str) -> str:
    return str(gateway.command("POST", "/v1/tasks", {"shell": shell, "name": name})["task"])


def test_pages_fit_every_screen_and_the_keyboard_reaches_all_of_them(
    browser: Browser, shared: GatewayProcess, tmp_path: Path
) -> None:
    running = start(shared, "echo begun; sleep 600", "a server that is looked at for long")
    ended = run(shared, r"printf '\033[38;5;196mred\033[0m\n'; seq 1 200; exit 3", LONG_NAME)
    with User(browser, shared) as user:
        for path, ready in (
            ("/tasks", "td [data-row-link]"),
            (f"/tasks/{ended}", "mark, [data-index]"),
            (f"/tasks/{running}", "[data-index]"),
        ):
            assert layout_faults(user, path, ready) == [], path
            assert check_keyboard(user.page) == [], path
            assert check_axe(user.page) == [], path
        user.page.set_viewport_size({"width": 1024, "height": 768})
        user.open("/tasks")
        name = user.page.get_by_role("link", name=LONG_NAME)
        user.until(lambda: (name.bounding_box() or {"width": 0})["width"] > 180, "the name has the most room")
        shared.command("POST", f"/v1/tasks/{running}/stop", {"force": True})
        shared.until_ended(running)


def test_nothing_is_counted_that_was_not_heard(browser: Browser, gateway: GatewayProcess) -> None:
    only = run(gateway, "echo something", "the only one")
    with User(browser, gateway) as user:
        page = user.page
        page.route(re.compile(r"/v1/(tasks|overview)"), lambda route: route.abort())
        user.open("/tasks")
        expect(page.get_by_text("The gateway does not answer").first).to_be_visible()
        for claim in ("0 tasks", "No task yet", "Nothing fits", "Failed 0", "Running 0"):
            expect(page.get_by_text(claim)).to_have_count(0)
        page.unroute(re.compile(r"/v1/(tasks|overview)"))
        page.route("**/output?*", lambda route: route.abort())
        user.open(f"/tasks/{only}")
        expect(page.get_by_text("It is tried again")).to_be_visible()
        expect(page.get_by_text("It wrote nothing")).to_have_count(0)
        page.unroute("**/output?*")
        expect(page.get_by_role("region", name="Output of")).to_contain_text("something")
        user.open("/tasks")
        expect(page.get_by_role("link", name="the only one")).to_be_visible()
        expect(page.get_by_text("1 task,")).to_be_visible()
        gateway.terminate()
        expect(page.get_by_text(re.compile(r"1 task, .* as of \d\d:\d\d, offline"))).to_be_visible()
        page.get_by_role("link", name="the only one").click()
        expect(page.get_by_text(re.compile(r"as of \d\d:\d\d, offline"))).to_be_visible()


def test_all_of_an_output_is_found_by_the_gateway(guest: User) -> None:
    script = (
        "echo the first NEEDLE; yes 'a line that has nothing' | head -c 9M; echo;"
        "head -c 30000 /dev/zero | tr '\\0' x; echo ' a needle far to the right';"
        "printf 'ne\\033[38;2;255;255;0medle\\033[0m in colours\\n10 %%\\r needle \\r20 %%\\n'; seq 1 300"
    )
    task = run(guest.gateway, script)
    page = guest.page
    guest.open(f"/tasks/{task}")
    output = page.get_by_role("region", name="Output of")
    expect(output).to_contain_text("300")
    count = page.get_by_role("status").filter(has_text=re.compile(" of |none"))
    field = page.get_by_label("Search the output")
    field.fill("needle")
    expect(count).to_have_text("1 of 4")
    expect(output.locator("mark[data-current]")).to_have_text("NEEDLE")
    expect(output.locator("[data-current]").first).to_contain_text("the first")
    expect(page.get_by_text(re.compile(r"were dropped: nothing can be found there"))).to_be_visible()
    field.press("Enter")
    expect(count).to_have_text("2 of 4")
    mark = output.locator("mark[data-current]")
    expect(mark).to_have_text("needle")
    expect(mark).to_be_in_viewport()  # at the end of a line of 30,000 letters, in its place
    assert "x" * 1000 in output.inner_text()
    page.get_by_role("button", name="Next match").click()
    expect(output.locator("mark[data-current]").first).to_have_text("ne")
    expect(output.get_by_text("in colours")).to_be_in_viewport()
    page.get_by_role("button", name="Next match").click()
    expect(output).to_contain_text("found in a part that was overwritten later")
    field.press("Shift+Enter")
    expect(count).to_have_text("3 of 4")
    field.fill("nothing like it")
    expect(count).to_have_text("none")
    # how lines are shown
    wide = output.evaluate("box => box.scrollWidth > box.clientWidth")
    page.get_by_role("button", name="Wrap").click()
    until(lambda: output.evaluate("box => box.scrollWidth <= box.clientWidth"), "it wraps")
    assert wide
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Lines").click()
    expect(output.locator("[data-index='1']")).to_contain_text(re.compile(r"^2a line"))
    page.reload()
    expect(page.get_by_role("button", name="Wrap")).to_have_attribute("aria-pressed", "true")


def test_selection_offers_only_what_can_be_done(browser: Browser, gateway: GatewayProcess) -> None:
    running = start(gateway, "sleep 600", "a running one")
    run(gateway, "echo again >> /dev/null", "an ended one")
    with User(browser, gateway) as user:
        page = user.page
        user.open("/tasks")
        chosen = page.get_by_role("region", name="Chosen tasks")
        page.get_by_label("Choose an ended one").check()
        expect(chosen.get_by_role("button")).to_have_text(["Run 1 again", "Pin 1", ""])
        page.get_by_label("Choose a running one").check()
        expect(chosen.get_by_role("button")).to_have_text(["Stop 1", "Run 1 again", "Pin 2", ""])
        page.keyboard.press("Escape")
        expect(chosen).to_have_count(0)
        # the menu of a row, by keyboard
        page.keyboard.press("j")
        expect(page.get_by_role("link", name="a running one")).to_be_focused()
        page.keyboard.press("j")
        expect(page.get_by_role("link", name="an ended one")).to_be_focused()
        page.keyboard.press("k")
        expect(page.get_by_role("link", name="a running one")).to_be_focused()
        page.keyboard.press("x")
        expect(page.get_by_label("Choose a running one")).to_be_checked()
        chosen.get_by_role("button", name="Stop 1").press("Enter")
        expect(page.locator("tbody tr", has_text="a running one")).to_contain_text("Stopped")
        expect(page.get_by_role("region", name="Tasks", exact=True)).to_be_focused()
        menu = page.get_by_role("button", name="Actions for a running one")
        menu.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("menu")).to_be_visible()
        page.keyboard.press("Home")
        expect(page.get_by_role("menuitem", name="Run again")).to_be_focused()
        expect(page.get_by_role("menuitem", name="Stop")).to_have_count(0)
        page.keyboard.press("Escape")
        expect(menu).to_be_focused()
        expect(page.locator("tbody tr", has_text="an ended one").locator("td").nth(4)).to_have_text("you")
        user.open(f"/tasks/{running}")
        expect(page.get_by_label("About this task")).to_contain_text("stopped by you")
        page.get_by_role("button", name="Background tasks").click()
        drawer = page.get_by_role("complementary", name="Background tasks")
        expect(drawer.get_by_role("link", name="a running one")).to_contain_text("stopped by you")
        drawer.get_by_role("button", name="Close the panel").click()
        page.get_by_role("button", name="Run again").click()
        expect(page).not_to_have_url(re.compile(running))
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_role("button", name="Run again")).to_be_visible()
        user.open("/tasks/ffffffffffffffff")
        expect(page.get_by_text("There is no such task")).to_be_visible()


def test_an_agents_page_has_one_bar_and_a_way_to_its_chat(guest: User) -> None:
    started = guest.gateway.command("POST", "/v1/tasks/agents", {"prompt": "say from the background"})
    guest.gateway.until_rest(started["session"])
    page = guest.page
    guest.open(f"/tasks/{started['task']}")
    expect(page.get_by_role("log")).to_contain_text("from the background")
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("button", name=re.compile("^Background tasks"))).to_have_count(1)
    page.get_by_role("link", name="Open its chat").click()
    page.wait_for_url(f"**/s/{started['session']}")


def test_agent_that_waits_for_a_person_does_not_count_as_at_work(guest: User) -> None:
    started = guest.gateway.command("POST", "/v1/tasks/agents", {"prompt": "sh echo **/x", "profile": "careful"})
    guest.gateway.until_event(started["session"], "WaitOpened")
    guest.open("/home")
    home = guest.page.get_by_role("main")
    running = guest.page.get_by_role("region", name="Running now").locator(f"[data-why='task/{started['task']}']")
    expect(running.locator("[data-chip]")).to_have_text("Waiting")
    expect(home.locator(f"[data-why='session/{started['session']}']").first).to_contain_text("**/x")  # to the letter
    guest.open("/tasks")
    row = guest.page.locator(f"tr[data-why='task/{started['task']}']")
    expect(row.locator("[data-chip]")).to_have_text("Waiting")
    guest.open(f"/tasks/{started['task']}")
    expect(guest.page.get_by_role("complementary", name="About this task")).to_contain_text("What it doesWaiting")
    guest.page.get_by_role("button", name="Allow once").click()
    expect(guest.page.locator("[data-bar] [data-chip]")).to_have_text("Done")


def test_what_a_task_changed_is_shown_line_by_line(guest: User, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    commit = "git init -q . && git add . && git -c user.name=x -c user.email=x commit -qm one"
    run(guest.gateway, commit, cwd=str(tmp_path))
    page, task = guest.page, run(guest.gateway, "echo two > a.txt; echo new > b.txt", cwd=str(tmp_path))
    guest.open(f"/tasks/{task}")
    page.get_by_role("button", name="Show the changes").click()
    changed = page.get_by_role("group", name="Changes in a.txt")
    expect(changed).to_contain_text("-one")
    expect(changed).to_contain_text("+two")
    expect(page.get_by_role("list", name="Changed files").get_by_role("listitem")).to_have_count(2)
    assert check_layout(page) + check_axe(page) == []
    page.get_by_role("tab", name="Output").click()
    expect(page.get_by_label("Search the output")).to_be_visible()
