"""The shell, Home and the settings: what they say, by keyboard, at every width, and without the gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.e2e.gateway import GatewayProcess
from tests.web.board import new_board, new_card, status
from tests.web.checks import check_axe, check_keyboard, check_layout, layout_faults, set_drawer
from tests.web.user import SECTIONS, User

STATED = re.compile(r"\b0 running|Nothing is running|Nothing needs you|\b0 tasks|Nothing has ended")
"""What a page may say only if it heard so."""
FAULTY = """
<style>
  button, p, a { position: fixed; top: 9px; margin: 0; font-size: 13px; line-height: 20px }
  p { left: 300px; width: 12px; overflow-wrap: anywhere }
  p.cut { left: 400px; width: 20px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
</style>
<button style="left: 9px; width: 90px">one</button>
<button style="left: 50px; width: 90px">two</button>
<p>a column</p>
<p class="cut">a name</p>
<a href="#x" style="left: 500px; outline: 0">plain</a>
"""


def test_checkers_see_overlap_cut_text_and_invisible_focus(guest: User) -> None:
    page = guest.context.new_page()
    page.set_content(FAULTY)
    faults = "\n".join(check_layout(page))
    assert "one <button> overlaps two <button>" in faults
    assert "a column <p> is" in faults and "lines high" in faults
    assert "a name <p.cut> is cut to 20 px" in faults
    assert any("plain <a> has the focus and does not show it" in fault for fault in check_keyboard(page))


def test_first_minute_says_who_answers_and_offers_three_things(browser: Browser, gateway: GatewayProcess) -> None:
    with User(browser, gateway) as user:
        user.open("/home")
        steps = user.page.get_by_role("region", name="First steps")
        expect(steps).to_contain_text("A script answers, no AI.")
        expect(steps).to_contain_text("ANTHROPIC_API_KEY")
        expect(steps.get_by_role("listitem").get_by_role("button")).to_have_count(3)
        faults = layout_faults(user, "/home") + check_keyboard(user.page)
        steps.get_by_role("button", name="Be asked").click()
        user.page.wait_for_url("**/s/*")
        expect(user.page.get_by_role("button", name="blue", exact=True)).to_be_visible()
        user.open("/home")
        expect(user.page.get_by_role("region", name="Needs you")).to_contain_text("Which colour do you like?")
        expect(steps).to_have_count(0)  # there is a session now
        assert faults == []


def test_unknown_is_not_zero(guest: User) -> None:
    """Nothing is stated while the gateway does not answer the questions of the page."""

    def refuse(route: Route) -> None:
        route.abort()

    for path in ("inbox", "overview", "tasks", "sessions"):
        guest.context.route(re.compile(rf"/v1/{path}\b"), refuse)
    guest.open("/home")
    overview = guest.page.get_by_role("region", name="Overview")
    expect(overview.get_by_text("Not known right now").first).to_be_visible()
    for name in ("Needs you", "Running now", "Since you last looked", "Last 24 hours"):
        expect(overview.get_by_role("region", name=name)).to_contain_text("Not known right now")
    guest.page.keyboard.press("t")
    drawer = guest.page.get_by_role("complementary", name="Background tasks")
    expect(drawer).to_contain_text("Not known right now")
    assert STATED.findall(guest.page.locator("main").inner_text()) == []


def test_reload_without_gateway_shows_what_was_known_and_the_outbox(installed: User) -> None:
    """A dead gateway stops turns: the page says so, and shows what it knew, also after a reload."""
    page = installed.page
    installed.open("/home")
    known = "() => caches.match('/snapshot.json').then(found => found?.text() ?? '')"
    installed.until(lambda: "at-work" in page.evaluate(known), "what Home shows is kept")
    installed.begin()
    installed.send("say the first answer")
    installed.sees("the first answer")
    installed.finished(1)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    kept = "() => caches.match('/files.txt').then(found => found !== undefined)"
    installed.until(lambda: bool(page.evaluate(kept)), "the files are kept")
    seen = f"""() => caches.match('/snapshot/session/{installed.session}').then(found => found?.text() ?? '')"""
    installed.until(lambda: "the first answer" in page.evaluate(seen), "the session is kept")
    port = installed.port
    installed.gateway.kill9()
    page.goto(f"http://127.0.0.1:{port}/home")
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("The gateway has not been running since")
    expect(banner).to_contain_text("commands keep running. Start it with holdfast serve")
    expect(page.get_by_role("region", name="Running now")).to_contain_text(re.compile(r"as of \d\d:\d\d, offline"))
    expect(page.get_by_role("region", name="Health").get_by_text("All well")).to_have_count(0)
    page.goto(f"http://127.0.0.1:{port}/s/{installed.session}")
    installed.sees("the first answer")
    installed.send("say written without a gateway")
    expect(page.get_by_text("Waits in this browser")).to_be_visible()
    page.reload()
    expect(page.get_by_text("say written without a gateway").first).to_be_visible()
    installed.gateway.start(port)
    installed.sees("written without a gateway")
    expect(page.get_by_role("alert")).to_have_count(0)
    installed.finished(2)
    assert len(installed.events("InputReceived")) == 2


@pytest.fixture
def publicly(gateway: GatewayProcess, browser: Browser) -> Iterator[User]:
    """Somebody at a gateway that other devices can reach."""
    config = gateway.home / "config.toml"
    config.write_text('[gateway]\npublic_urls = ["https://box.example"]\n' + config.read_text())
    port = gateway.port
    gateway.terminate()
    gateway.start(port)
    with User(browser, gateway) as user:
        yield user


def test_device_is_named_and_added_by_an_address_that_it_can_reach(publicly: User) -> None:
    page = publicly.page
    publicly.open("/settings/devices")
    page.get_by_role("button", name="Add a device…").click()
    dialog = page.get_by_role("dialog", name="Add a device")
    expect(dialog.get_by_role("img", name="QR code of the sign-in link")).to_be_visible()
    expect(dialog).to_contain_text("https://box.example")
    expect(dialog).not_to_contain_text("127.0.0.1")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Actions for ")).press("ArrowDown")
    publicly.choose("Rename…")
    page.get_by_label("Name", exact=True).fill("The desk")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Devices")).to_contain_text("The desk")


def test_device_is_not_sent_to_loopback(guest: User) -> None:
    guest.open("/settings/devices")
    guest.page.get_by_role("button", name="Add a device…").click()
    dialog = guest.page.get_by_role("dialog", name="Add a device")
    expect(dialog).to_contain_text("Other devices cannot reach this gateway yet")
    expect(dialog.get_by_role("img")).to_have_count(0)
    expect(dialog).not_to_contain_text("127.0.0.1")


def test_settings_are_changed_here_and_every_section_holds_at_every_width(user: User) -> None:
    page = user.page
    user.open("/settings/reset")
    page.get_by_label("Sessions are reset").select_option("idle")
    expect(page.get_by_text("Saved")).to_be_visible()
    minutes = page.get_by_label("Minutes without activity")
    minutes.fill("90")
    minutes.press("Enter")
    user.until(lambda: "idle_minutes = 90" in (user.gateway.home / "config.toml").read_text(), "it is written")
    user.open("/settings/profiles")
    careful = page.get_by_role("radio", name=re.compile("^careful"))
    careful.click()
    expect(careful).to_be_checked()  # once the gateway has written it
    expect(page.get_by_text("Saved")).to_be_visible()
    assert user.gateway.get("/v1/settings")["default_profile"] == "careful"
    user.open("/settings/appearance")
    page.get_by_label("Dark").check()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_label("As the system").check()
    expect(page.locator("html:not([data-theme])")).to_have_count(1)
    faults: list[str] = []
    for section in SECTIONS:
        faults += layout_faults(user, f"/settings/{section}", "main section")
        faults += [f"{section}: {fault}" for fault in check_keyboard(page)]
    assert faults == []


def test_unknown_pages_and_the_palette(guest: User) -> None:
    """`/chats` is the chats, an unknown address says so, and a session and its task are two rows of the palette."""
    page = guest.page
    guest.open("/chats")
    page.wait_for_url("**/s")
    guest.open("/no/such/page")
    expect(page.get_by_role("heading", name="No such page")).to_be_visible()
    expect(page.locator("main")).to_contain_text("/no/such/page")
    client = guest.gateway.client
    task = client.post("/v1/tasks/agents", json={"prompt": "say hello", "profile": "demo", "title": "ghostly"}).json()
    guest.until(lambda: client.get(f"/v1/tasks/{task['task']}").json()["state"] == "done", "the agent is done")
    page.keyboard.press("Control+k")
    find = page.get_by_role("combobox", name="Find or do anything")
    rows = page.get_by_role("option")
    find.fill("ghostly")
    expect(rows.filter(has_text="ghostly").first).to_be_visible()
    find.fill("no such thing anywhere")
    expect(rows).to_have_count(0)
    find.fill("ghostly")
    expect(rows.filter(has_text="ghostly").first).to_be_visible()
    names = rows.evaluate_all("all => all.map(one => one.textContent)")
    assert len(names) == len(set(names))
    page.keyboard.press("Escape")
    expect(find).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_home_with_all_that_can_need_somebody(
    browser: Browser, gateway: GatewayProcess, theme: str
) -> None:
    config = gateway.home / "config.toml"
    before = config.read_text()
    config.write_text(before + '[profiles.gone]\nmodel = "demo"\n')
    board = new_board(gateway, "stuck", paused=True)
    new_card(gateway, board, "nobody can start it", profile="gone")
    config.write_text(before)
    gateway.command("POST", f"/v1/boards/{board}/resume", {})
    blocked = new_card(gateway, "default", "it asks", 'call block {"reason": "Which one?", "kind": "needs_input"}')
    gateway.command("POST", "/v1/sessions", {"text": 'call question {"text": "Both?", "choices": ["yes", "no"]}'})
    gateway.command("POST", "/v1/sessions", {"text": "sh echo waits", "profile": "careful"})
    gateway.until_rest(gateway.create("fail"))
    with User(browser, gateway, color_scheme=theme) as user:
        for kind in ("question", "approval", "failed_turn", "card_not_startable"):
            needs_you = f'"kind":"{kind}"'
            user.until(lambda: needs_you in gateway.request("GET", "/v1/inbox").text, kind)  # noqa: B023
        user.until(lambda: status(gateway, blocked) != "ready", "it was started")
        user.open("/home")
        needs = user.page.get_by_role("region", name="Needs you")
        expect(needs).to_contain_text("nobody can start it")
        expect(needs.get_by_role("button", name="Allow once")).to_be_visible()
        expect(user.page.get_by_role("region", name="Health")).to_contain_text(re.compile(r"\w"))
        set_drawer(user.page, is_open=True)
        faults = check_axe(user.page)
        set_drawer(user.page, is_open=False)
        assert faults + check_axe(user.page) == []


def test_profiles_are_added_changed_and_deleted_and_keys_are_not_shown(user: User) -> None:
    page, gateway = user.page, user.gateway
    config = gateway.home / "config.toml"
    work = gateway.home.parent / "work"
    work.mkdir()
    user.open("/settings/profiles")
    panel = page.get_by_role("region", name="Profiles")
    expect(panel).to_contain_text("It asks before: terminal.")
    page.get_by_role("button", name="Add a profile…").click()
    dialog = page.get_by_role("dialog")
    add = dialog.get_by_role("button", name="Add the profile")
    for name, value, said in (
        ("Name", "two words", "Letters, digits"),
        ("Name", "careful", "exists already"),
        ("Model", "nobody:model", "nobody"),
        ("Directory", "/nowhere/at/all", "/nowhere/at/all"),
    ):
        for label, good in (("Name", "tester"), ("Model", "anthropic:some-model"), ("Directory", str(work))):
            dialog.get_by_label(label, exact=True).fill(good)
        field = dialog.get_by_label(name, exact=True)
        field.fill(value)
        add.click()
        below = field.get_attribute("aria-describedby") or "nothing"
        expect(dialog.get_by_role("alert")).to_have_attribute("id", below)  # it stands below its field
        expect(dialog.get_by_role("alert")).to_contain_text(said)
        field.fill("tester" if name == "Name" else "anthropic:some-model" if name == "Model" else str(work))
    assert "tester" not in config.read_text()
    dialog.get_by_label("Permissions").select_option("own")
    dialog.get_by_label("Rules").fill("terminal = perhaps")
    add.click()
    expect(dialog.get_by_role("alert")).to_contain_text("Not a rule: terminal = perhaps")
    dialog.get_by_label("Rules").fill("terminal = ask\nwrite:docs/* = allow")
    assert check_axe(page) + check_layout(page) == []
    add.click()
    expect(dialog).to_have_count(0)
    expect(panel).to_contain_text("It asks before: terminal. Allowed without asking: write:docs/*.")
    expect(panel).to_contain_text("Key: not set. Set ANTHROPIC_API_KEY")
    page.get_by_role("button", name="Menu of the profile tester").click()
    page.get_by_role("menuitem", name="Edit…").click()
    dialog.get_by_label("Permissions").select_option("all")
    dialog.get_by_label("Model").fill("demo")
    dialog.get_by_role("button", name="Save the profile").click()
    expect(dialog).to_have_count(0)
    (found,) = [one for one in gateway.get("/v1/profiles")["profiles"] if one["name"] == "tester"]
    assert (found["model"], found["cwd"], found["tools"]) == ("demo", str(work), {"*": "allow"})
    page.get_by_role("button", name="Menu of the profile tester").click()
    page.get_by_role("menuitem", name="Delete…").click()
    dialog.get_by_role("button", name="Delete 1 profile").click()
    expect(panel).not_to_contain_text("tester")
    assert "tester" not in config.read_text() and "careful" in config.read_text()
