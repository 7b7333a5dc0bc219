"""Notifications: opt-in, only while nobody looks, once for all tabs. And the banner of an older build."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.web.seat import Seat

HIDDEN = (
    "Object.defineProperty(Document.prototype, 'visibilityState', { get: () => window.shown ? 'visible' : 'hidden' })"
)
SHOWN = """navigator.serviceWorker.ready.then(worker => worker.getNotifications())
    .then(found => found.map(one => [one.title, one.data.to]))"""

COUNTED = """(() => {
    const show = registration.showNotification.bind(registration)
    self.count = 0
    registration.showNotification = (...given) => { self.count += 1; return show(...given) }
})()"""


def opted_in(seat: Seat) -> None:
    """Ask for them in the settings, as a person does."""
    seat.context.grant_permissions(["notifications"], origin=seat.gateway.url)
    seat.open("/settings/notifications")
    box = seat.page.get_by_role("checkbox")
    box.click()
    expect(box).to_be_checked()  # when the browser has said yes
    seat.page.evaluate("navigator.serviceWorker.ready")


def shown(page: Page) -> list[list[str]]:
    found: list[list[str]] = page.evaluate(SHOWN)
    return found


def question(seat: Seat) -> str:
    """Something that somebody should hear about; the session that waits."""
    body = {"text": "sh echo waits", "profile": "careful"}
    return str(seat.gateway.client.post("/v1/sessions", json=body).json()["session"])


def waits(seat: Seat, count: int) -> Callable[[], bool]:
    return lambda: len(seat.gateway.client.get("/v1/inbox").json()["waits"]) == count


@pytest.fixture
def hidden(seat: Seat) -> Seat:
    seat.context.add_init_script(HIDDEN)
    return seat


def test_nobody_is_told_who_did_not_ask(hidden: Seat) -> None:
    hidden.context.grant_permissions(["notifications"], origin=hidden.gateway.url)
    hidden.open("/home")
    expect(hidden.page.locator(".conn")).to_have_text("Live")
    question(hidden)
    expect(hidden.page.locator(".toast")).to_contain_text("A session waits for you")  # it was heard
    hidden.page.wait_for_timeout(700)
    assert shown(hidden.page) == []


def test_two_hidden_tabs_tell_once(hidden: Seat) -> None:
    opted_in(hidden)
    hidden.open("/home")
    other = hidden.tab()
    other.goto(hidden.gateway.url + "/tasks")
    for page in (hidden.page, other):
        expect(page.locator(".conn")).to_have_text("Live")
    (worker,) = hidden.context.service_workers
    worker.evaluate(COUNTED)
    first = question(hidden)
    for page in (hidden.page, other):
        expect(page.locator(".toast")).to_contain_text("A session waits for you")
    hidden.until(lambda: len(shown(other)) == 1, "it is shown")
    assert shown(hidden.page) == [["A session waits for you", f"/s/{first}"]]
    hidden.until(waits(hidden, 1), "it waits")
    hidden.page.wait_for_timeout(700)
    assert worker.evaluate("self.count") == 1  # not once more in the place of the first
    question(hidden)
    hidden.until(lambda: len(shown(other)) == 2, "each thing has its own")


def test_who_looks_at_any_tab_is_not_told(hidden: Seat) -> None:
    opted_in(hidden)
    hidden.open("/home")
    other = hidden.tab()
    other.add_init_script("window.shown = true")
    other.goto(hidden.gateway.url + "/home")
    for page in (hidden.page, other):
        expect(page.locator(".conn")).to_have_text("Live")
    question(hidden)
    expect(hidden.page.locator(".toast")).to_contain_text("A session waits for you")
    hidden.page.wait_for_timeout(900)
    assert shown(hidden.page) == []


def test_an_older_build_asks_to_be_loaded_anew(seat: Seat) -> None:
    seat.open("/home")
    expect(seat.page.locator(".conn")).to_have_text("Live")
    assert seat.page.get_by_text("This page is from an older build.").count() == 0
    seat.page.route("**/v1/build", lambda route: route.fulfill(json={"version": "9.9.9", "build": "another"}))
    seat.cut_line()
    expect(seat.page.locator(".conn")).not_to_have_text("Live")
    seat.mend_line()
    expect(seat.page.get_by_text("This page is from an older build.")).to_be_visible()
    seat.page.unroute("**/v1/build")
    seat.page.get_by_role("button", name="Reload").click()
    expect(seat.page.locator(".conn")).to_have_text("Live")
    assert seat.page.get_by_text("This page is from an older build.").count() == 0
