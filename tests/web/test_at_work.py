"""What one does in the page: answer, queue, stop, run in the background, read an output, sign in and out."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.gateway import GatewayProcess
from tests.web.seat import Seat


def test_an_approval_is_given_in_place(seat: Seat) -> None:
    seat.begin("careful")
    seat.send("sh echo allowed")
    card = seat.page.get_by_role("group", name="Approval")
    expect(card).to_contain_text("echo allowed")
    card.get_by_role("button", name="Allow once").click()
    seat.sees("terminal done: allowed")
    expect(card).to_have_count(0)
    seat.sees("Allow once, you at")


def test_what_is_queued_can_be_changed_and_withdrawn(seat: Seat) -> None:
    seat.begin()
    seat.send("slow 8 a long one that takes its time")
    seat.sees("a long")
    seat.send("say first")
    seat.send("say second")
    chips = seat.page.get_by_role("list", name="Queued messages").get_by_role("listitem")
    expect(chips).to_have_count(2)
    chips.nth(1).get_by_role("button", name="Edit").click()
    seat.page.get_by_label("Queued message", exact=True).fill("say changed")
    seat.page.get_by_role("button", name="Save").click()
    expect(chips.nth(1)).to_contain_text("say changed")
    chips.nth(0).get_by_role("button", name="Remove").click()
    expect(chips).to_have_count(1)
    seat.page.get_by_role("button", name="Stop the turn").click()
    seat.sees("Stopped")
    seat.sees("changed")
    assert "say first" not in seat.page.get_by_role("log").inner_text()


def test_run_in_background_and_read_its_transcript(seat: Seat) -> None:
    seat.begin()
    box = seat.page.get_by_label("Message", exact=True)
    box.fill("slow 3 done by somebody else")
    box.press("Control+Enter")
    seat.page.keyboard.press("Escape")
    seat.page.get_by_role("button", name="Background tasks").click()
    drawer = seat.page.get_by_role("complementary", name="Background tasks")
    expect(drawer).to_contain_text("Running 1")
    drawer.get_by_role("link", name="done by somebody else").click()
    seat.sees("done by somebody else")
    expect(seat.page.locator(".bar .chip", has_text="Done")).to_be_visible()


def test_detach_makes_the_running_turn_a_task(seat: Seat) -> None:
    seat.begin()
    seat.send("slow 20 this takes rather long and nobody waits for it")
    seat.sees("this takes")
    seat.page.get_by_role("button", name="Detach").click()
    seat.sees("goes on as a background task")
    assert len(seat.gateway.client.get("/v1/tasks").json()["tasks"]) == 1


def test_the_output_of_a_task_that_ended_before_a_restart(seat: Seat) -> None:
    command = r"printf '\033[31mred\033[0m line\n\033]52;c;aGk=\007<b>plain</b>\n'; seq 1 5000"
    task = seat.gateway.client.post("/v1/tasks", json={"shell": command}).json()["task"]
    seat.gateway.client.get(f"/v1/tasks/{task}/wait", params={"seconds": 20})
    port = seat.port
    seat.gateway.kill9()
    seat.gateway.start(port)
    seat.open(f"/tasks/{task}")
    output = seat.page.get_by_role("region", name="Output of")
    expect(output).to_contain_text("5000")
    assert output.locator(".row").count() < 200  # only what is visible is rendered
    seat.page.get_by_role("button", name="Start").click()
    expect(output.locator(".a31")).to_have_text("red")
    expect(output).to_contain_text("<b>plain</b>")
    assert "52;c" not in output.inner_text()
    seat.page.get_by_label("Search the output").fill("4321")
    seat.page.keyboard.press("Enter")
    expect(output.locator("mark.hit")).to_have_text("4321")


def test_a_running_task_is_followed_and_stopped(seat: Seat) -> None:
    shell = "for i in $(seq 1 600); do echo tick $i; sleep 0.1; done"
    task = seat.gateway.client.post("/v1/tasks", json={"shell": shell}).json()["task"]
    seat.open(f"/tasks/{task}")
    expect(seat.page.get_by_role("region", name="Output of")).to_contain_text("tick 12")
    seat.page.get_by_role("button", name="Stop").click()
    expect(seat.page.locator(".bar .chip", has_text="Stopped")).to_be_visible()


def test_hostile_markdown_is_text(seat: Seat) -> None:
    seat.begin()
    hostile = (
        "<script>window.pwned = 1</script> <img src=x onerror='window.pwned=1'> [click](javascript:alert(1)) "
        "![pixel](http://example.invalid/p.png) abc\u202edcb"
    )
    seat.send(f"say First {hostile}")
    seat.sees("<script>")
    log = seat.page.get_by_role("log")
    answer = log.locator(".entry .prose").last
    expect(answer).to_contain_text("image: pixel")
    assert answer.locator("img, script").count() == 0
    assert not any((link.get_attribute("href") or "").startswith("javascript") for link in answer.locator("a").all())
    assert "\u202e" not in answer.inner_text()
    assert seat.page.evaluate("window.pwned") is None


def test_a_code_works_once_and_a_revoked_device_is_out(browser: Browser, gateway: GatewayProcess) -> None:
    code = gateway.client.post("/v1/codes", json={}).json()["code"]
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{gateway.url}/#code={code}")
    page.wait_for_url("**/home")
    assert code not in page.evaluate("location.href + JSON.stringify(history.state)")
    other = browser.new_context().new_page()
    other.goto(f"{gateway.url}/#code={code}")
    expect(other.get_by_role("alert")).to_contain_text("This sign-in code was used")
    assert code not in other.url
    (device,) = gateway.client.get("/v1/devices").json()["devices"]
    gateway.client.request("DELETE", f"/v1/devices/{device['id']}")
    expect(page.get_by_role("heading", name="Sign in to Holdfast")).to_be_visible()
    other.context.close()
    context.close()


@pytest.mark.parametrize("path", ["/home", "/s", "/s/SESSION", "/tasks", "/tasks/TASK", "/settings/devices"])
def test_phone_width_without_sideways_scrolling(browser: Browser, gateway: GatewayProcess, path: str) -> None:
    task = gateway.client.post("/v1/tasks", json={"shell": "echo " + "long " * 60}).json()["task"]
    with Seat(browser, gateway, viewport={"width": 390, "height": 844}, has_touch=True) as seat:
        seat.begin()
        seat.send("say " + "word " * 200 + "x" * 300)
        seat.finished(1)
        seat.open(path.replace("SESSION", seat.session).replace("TASK", task))
        seat.page.wait_for_timeout(600)
        wide = seat.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, wide


def test_by_keyboard_alone(seat: Seat) -> None:
    seat.open("/home")
    expect(seat.page.get_by_role("heading", name="Home")).to_be_visible()
    seat.page.keyboard.press("n")
    seat.page.wait_for_url("**/s/*")
    expect(seat.page.get_by_label("Message", exact=True)).to_be_focused()
    seat.page.keyboard.type("say by keyboard")
    seat.page.keyboard.press("Enter")
    seat.sees("by keyboard")
    seat.page.locator("h1").first.click()
    seat.page.keyboard.press("g")
    seat.page.keyboard.press("t")
    seat.page.wait_for_url("**/tasks")


def test_storage_disabled(browser: Browser, gateway: GatewayProcess) -> None:
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('disabled') }})")
    page = context.new_page()
    page.goto(f"{gateway.url}/#code={gateway.client.post('/v1/codes', json={}).json()['code']}")
    page.wait_for_url("**/home")
    page.get_by_role("button", name="New session").first.click()
    page.get_by_label("Message", exact=True).fill("say kept in memory")
    page.keyboard.press("Enter")
    expect(page.get_by_role("log")).to_contain_text("kept in memory")
    assert json.dumps(page.context.cookies()) != "[]"
    context.close()
