"""What one does in the page: answer, queue, stop, run in the background, read an output, sign in and out."""

from __future__ import annotations

import time

from playwright.sync_api import Browser, expect

from tests.e2e.gateway import GatewayProcess, wait_for
from tests.web.checks import loaded
from tests.web.user import SECTIONS, User, new_context


def test_an_approval_is_given_in_place(guest: User) -> None:
    guest.begin("careful")
    guest.send("sh echo allowed")
    card = guest.page.get_by_role("group", name="Approval")
    expect(card).to_contain_text("echo allowed")
    card.get_by_role("button", name="Allow once").click()
    guest.sees("terminal done: allowed")
    expect(card).to_have_count(0)
    guest.sees("Allow once, you at")


def test_what_is_queued_can_be_changed_and_withdrawn(guest: User) -> None:
    guest.begin()
    guest.send("slow 600 a long one that takes its time" + " and more" * 500)
    guest.sees("a long")
    guest.send("say first")
    guest.send("say second")
    chips = guest.page.get_by_role("list", name="Queued messages").get_by_role("listitem")
    expect(chips).to_have_count(2)
    chips.nth(1).get_by_role("button", name="Edit").click()
    guest.page.get_by_label("Queued message", exact=True).fill("say changed")
    guest.page.get_by_role("button", name="Save").click()
    expect(chips.nth(1)).to_contain_text("say changed")
    chips.nth(0).get_by_role("button", name="Remove").click()
    expect(chips).to_have_count(1)
    guest.page.get_by_role("button", name="Stop the turn").click()
    guest.sees("Stopped")
    guest.sees("changed")
    expect(guest.page.get_by_role("log")).to_contain_text("withdrawn by you")


def test_run_in_background_and_read_its_transcript(user: User) -> None:
    user.begin()
    box = user.page.get_by_label("Message", exact=True)
    gate = user.gateway.home.parent / "gate"
    box.fill(f"say done by somebody else\nsh {wait_for(gate)}")
    box.press("Control+Enter")
    user.page.keyboard.press("Escape")
    user.page.get_by_role("button", name="Background tasks").click()
    drawer = user.page.get_by_role("complementary", name="Background tasks")
    expect(drawer).to_contain_text("Running 1")
    drawer.get_by_role("link", name="done by somebody else").click()
    gate.touch()
    user.sees("done by somebody else")
    expect(user.page.locator("[data-bar] [data-chip]", has_text="Done")).to_be_visible()


def test_detach_makes_the_running_turn_a_task(user: User) -> None:
    user.begin()
    user.send("slow 600 this takes rather long and nobody waits for it" + " at all" * 500)
    user.sees("this takes")
    user.page.get_by_role("button", name="Detach").click()
    user.sees("was made background task")
    assert len(user.gateway.client.get("/v1/tasks").json()["tasks"]) == 1


def test_the_output_of_a_task_that_ended_before_a_restart(user: User) -> None:
    command = r"printf '\033[31mred\033[0m line\n\033]52;c;aGk=\007<b>plain</b>\n'; seq 1 5000"
    task = user.gateway.client.post("/v1/tasks", json={"shell": command}).json()["task"]
    user.gateway.until_ended(task)
    port = user.port
    user.gateway.kill9()
    user.gateway.start(port)
    user.open(f"/tasks/{task}")
    output = user.page.get_by_role("region", name="Output of")
    expect(output).to_contain_text("5000")
    assert output.locator("[data-index]").count() < 200  # only what is visible is rendered
    user.page.get_by_role("button", name="Start").click()
    expect(output.get_by_text("red", exact=True)).to_have_css("color", "rgb(165, 44, 29)")
    expect(output).to_contain_text("<b>plain</b>")
    assert "52;c" not in output.inner_text()
    user.page.get_by_label("Search the output").fill("4321")
    expect(output.locator("mark")).to_have_text("4321")


def test_a_running_task_is_followed_and_stopped(guest: User) -> None:
    shell = "for i in $(seq 1 9999); do echo tick $i; sleep 0.1; done"
    task = guest.gateway.client.post("/v1/tasks", json={"shell": shell}).json()["task"]
    guest.open(f"/tasks/{task}")
    output = guest.page.get_by_role("region", name="Output of")
    expect(output).to_contain_text("tick")
    last = int(output.inner_text().rpartition("tick ")[2].split()[0])
    expect(output).to_contain_text(f"tick {last + 5}")  # at the end of what is read
    guest.page.get_by_role("button", name="Stop").click()
    expect(guest.page.locator("[data-bar] [data-chip]", has_text="Stopped")).to_be_visible()
    facts = guest.page.get_by_role("complementary", name="About this task").locator("dl")
    expect(facts).to_contain_text("Ended bySIGTERM")  # a signal is no exit code


def test_hostile_markdown_is_text(guest: User) -> None:
    guest.begin()
    hostile = (
        "<script>window.pwned = 1</script> <img src=x onerror='window.pwned=1'> [click](javascript:alert(1)) "
        "![pixel](http://example.invalid/p.png) abc\u202edcb"
    )
    guest.send(f"say First {hostile}")
    guest.sees("<script>")
    log = guest.page.get_by_role("log")
    answer = log.locator("article [data-text]").last
    expect(answer).to_contain_text("image: pixel")
    assert answer.locator("img, script").count() == 0
    assert not any((link.get_attribute("href") or "").startswith("javascript") for link in answer.locator("a").all())
    assert "\u202e" not in answer.inner_text()
    assert guest.page.evaluate("window.pwned") is None


def test_a_code_works_once_and_a_revoked_device_is_out(browser: Browser, gateway: GatewayProcess) -> None:
    code = gateway.client.post("/v1/codes", json={}).json()["code"]
    context = new_context(browser)
    page = context.new_page()
    page.goto(f"{gateway.url}/#code={code}")
    page.wait_for_url("**/home")
    assert code not in page.evaluate("location.href + JSON.stringify(history.state)")
    other = new_context(browser).new_page()
    other.goto(f"{gateway.url}/#code={code}")
    expect(other.get_by_role("alert")).to_contain_text("This sign-in code was used")
    assert code not in other.url
    (device,) = gateway.client.get("/v1/devices").json()["devices"]
    gateway.client.request("DELETE", f"/v1/devices/{device['id']}")
    expect(page.get_by_role("heading", name="Sign in to Holdfast")).to_be_visible()
    other.context.close()
    context.close()


def test_phone_width_without_sideways_scrolling(browser: Browser, shared: GatewayProcess) -> None:
    task = shared.client.post("/v1/tasks", json={"shell": "echo " + "long " * 60}).json()["task"]
    with User(browser, shared, viewport={"width": 390, "height": 844}, has_touch=True) as user:
        user.begin()
        user.send("say " + "word " * 200 + "x" * 300)
        user.finished(1)
        paths = ["/home", "/s", f"/s/{user.session}", "/tasks", f"/tasks/{task}"]
        paths += [f"/settings/{section}" for section in SECTIONS]
        for path in paths:
            user.open(path)
            loaded(user.page)
            wide = user.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390, (path, wide)


def test_by_keyboard_alone(guest: User) -> None:
    guest.page.clock.set_fixed_time(time.time())  # `g` and `t` come one soon after the other
    guest.open("/home")
    expect(guest.page.get_by_role("heading", name="Home")).to_be_visible()
    guest.page.keyboard.press("n")
    guest.page.wait_for_url("**/new")
    expect(guest.page.get_by_label("Message", exact=True)).to_be_focused()
    guest.page.keyboard.type("say by keyboard")
    guest.page.keyboard.press("Enter")
    guest.page.wait_for_url("**/s/*")
    guest.sees("by keyboard")
    guest.page.locator("h1").first.click()
    guest.page.keyboard.press("g")
    guest.page.keyboard.press("t")
    guest.page.wait_for_url("**/tasks")
