"""Settings and figures: retention, the doctor, the last day, what a task took, who looked when, what is in context."""

from __future__ import annotations

import contextlib
import re

from playwright.sync_api import Browser, Error, expect

from tests.e2e.gateway import GatewayProcess
from tests.web.user import User


def ran(gateway: GatewayProcess, shell: str, name: str) -> str:
    task = str(gateway.command("POST", "/v1/tasks", {"shell": shell, "name": name})["task"])
    gateway.until_ended(task)
    return task


def test_retention_shows_what_goes_and_lets_it_go(user: User) -> None:
    user.open("/settings/retention")
    panel = user.page.get_by_label("Retention", exact=True)
    expect(panel).to_contain_text("The rules delete nothing now.")
    ran(user.gateway, "echo old", "the old one")
    ran(user.gateway, "echo new", "the new one")
    most = panel.get_by_label("Keep at most this many ended tasks")
    most.fill("1")
    most.press("Enter")
    expect(panel).to_contain_text(re.compile(r"1 task and [\d.]+ \w+ .*would go now"))
    panel.get_by_text("takes 1 task").click()
    expect(panel.get_by_text("the old one")).to_be_visible()
    panel.get_by_role("button", name="Prune now").click()
    dialog = user.page.get_by_role("dialog", name="Apply the retention rules now?")
    dialog.get_by_role("button", name="Cancel").click()
    assert len(user.gateway.get("/v1/tasks")["tasks"]) == 2
    panel.get_by_role("button", name="Prune now").click()
    dialog.get_by_role("button", name="Delete 1 task").click()
    expect(panel).to_contain_text("The rules delete nothing now.")
    assert [task["title"] for task in user.gateway.get("/v1/tasks")["tasks"]] == ["the new one"]


def test_the_doctors_findings_and_the_build(user: User) -> None:
    user.open("/settings/health")
    doctor = user.page.get_by_label("Doctor")
    expect(doctor).to_contain_text("all checksums are correct")
    expect(doctor.get_by_text("All well")).to_be_visible()
    config = user.gateway.home / "config.toml"
    config.write_text("[gateway]\nport = 'x'\n")
    doctor.get_by_role("button", name="Look again").click()
    expect(doctor.get_by_text("Needs a hand")).to_be_visible()
    expect(doctor).to_contain_text("holdfast config check")
    user.open("/settings/about")
    about = user.page.get_by_label("About")
    expect(about).to_contain_text(str(user.gateway.get("/v1/build")["build"]))
    expect(about).to_contain_text(str(user.gateway.get("/v1/status")["version"]))


def test_the_last_day_and_when_somebody_looked_are_the_gateways(browser: Browser, gateway: GatewayProcess) -> None:
    ran(gateway, "exit 3", "an old failure")
    with User(browser, gateway) as user:
        user.open("/home")
        expect(user.page.get_by_role("img", name=re.compile("1 task ended, 1 of them failed"))).to_be_visible()
        health = user.page.get_by_role("region", name="Health")
        expect(health).to_contain_text(re.compile(r"Spent in 24 hours\s*nothing"))  # only commands ran
        expect(health).to_contain_text(re.compile(r"Disk\s*[\d.,]+ [MG]iB free"))
        ended = user.page.get_by_label("Since you last looked")
        expect(ended).to_contain_text("You were here")
        expect(ended.locator("[data-fresh]")).to_have_count(0)  # it ended before this device came in
        ran(gateway, "true", "a new end")
        expect(ended.locator("[data-fresh]")).to_contain_text("a new end")
        other = user.tab()
        other.goto(gateway.url + "/home")
        expect(other.locator("[data-fresh]")).to_have_count(1)
        ended.get_by_role("button", name="Mark as seen").click()
        for page in (user.page, other):
            expect(page.locator("[data-fresh]")).to_have_count(0)
        user.page.evaluate("localStorage.clear()")
        user.page.reload()
        expect(user.page.get_by_text("a new end")).to_be_visible()
        expect(user.page.locator("[data-fresh]")).to_have_count(0)


def test_since_you_last_looked_moves_on_when_one_has_looked(guest: User) -> None:
    page = guest.page
    page.clock.install()
    guest.open("/home")
    expect(page.locator("[data-connection]")).to_have_text("Live")
    ran(guest.gateway, "true", "it was looked at")
    fresh = page.get_by_label("Since you last looked").locator("[data-fresh]", has_text="it was looked at")
    expect(fresh).to_have_count(1)
    page.clock.fast_forward(3_000)  # a glance is no look
    page.get_by_role("link", name="Tasks", exact=True).first.click()
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()
    page.get_by_role("link", name="Home", exact=True).click()
    expect(page.get_by_label("Since you last looked")).to_contain_text("it was looked at")
    expect(fresh).to_have_count(0)


def test_a_task_says_what_happened_to_it_and_what_it_takes(guest: User) -> None:
    task = guest.gateway.command("POST", "/v1/tasks", {"shell": "while :; do echo x; sleep 0.2; done"})["task"]
    guest.open(f"/tasks/{task}")
    facts = guest.page.get_by_label("About this task")
    history, takes = facts.get_by_role("list", name="History"), facts.get_by_role("group", name="What it takes")
    expect(facts).to_contain_text("Live")
    expect(takes).to_contain_text("iB")
    expect(takes.locator("svg").first.locator("rect")).not_to_have_count(0)
    expect(history).to_contain_text("Runs as process")
    guest.page.get_by_role("button", name="Pin").click()
    expect(history).to_contain_text("Pinned by you")
    guest.page.get_by_role("button", name="Stop").click()
    expect(history).to_contain_text("Ended: stopped")
    expect(history).to_contain_text("Stop asked for by you")
    expect(facts).not_to_contain_text("Live")  # nothing is measured any more


def test_what_the_model_had_in_view(guest: User) -> None:
    guest.begin()
    expect(guest.page.locator("[data-connection]")).to_have_text("Live")
    assert guest.page.locator("[data-context]").count() == 0  # nothing is known yet
    guest.send("say hello")
    guest.finished(1)
    expect(guest.page.locator("[data-context]")).to_have_text(re.compile(r"^\d+ of 100k in context$"))
    # what makes it shorter comes first, unless the model sees even less at once
    guest.page.route(
        "**/context?texts=false",
        lambda route: route.fulfill(json=route.fetch().json() | {"window": 1_000}),  # a model that is known
    )
    guest.page.reload()
    expect(guest.page.locator("[data-context]")).to_have_text(re.compile(r"^\d+ of 1,000 in context$"))


def test_a_toast_stays_while_somebody_reads_it(user: User) -> None:
    user.page.clock.install()
    user.open("/home")
    expect(user.page.locator("[data-connection]")).to_have_text("Live")
    toast = user.page.locator("[data-toast]")

    def pointed_at() -> bool:  # on a busy machine it may go before somebody is there
        ran(user.gateway, "true", "a short one")
        with contextlib.suppress(Error):
            toast.hover(timeout=10_000)
        return toast.count() > 0

    user.until(pointed_at, "somebody points at it")
    expect(toast).to_contain_text("a short one is done")
    user.page.clock.fast_forward(20_000)
    expect(toast).to_have_count(1)
    user.page.mouse.move(5, 5)
    user.page.clock.fast_forward(7_000)
    expect(toast).to_have_count(0)
