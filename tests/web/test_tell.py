"""What to be told of is chosen in the menus of a task, a card and a session."""

from __future__ import annotations

from functools import partial

from playwright.sync_api import Locator, Page, expect

from tests.e2e.gateway import GatewayProcess, until
from tests.web.board import card, label, new_board, new_card
from tests.web.user import User


def choose(page: Page, place: Page | Locator, menu: str, word: str) -> None:
    place.get_by_role("button", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=word).click()


def is_told(gateway: GatewayProcess, task: str, tell: str) -> bool | None:
    return gateway.get(f"/v1/tasks/{task}")["tell"] == tell or None


def test_a_task_is_always_told_then_never_then_by_the_rules(guest: User) -> None:
    gateway, page = guest.gateway, guest.page
    id = str(gateway.command("POST", "/v1/tasks", {"shell": "sleep 600", "name": "a long build"})["task"])
    guest.open(f"/tasks/{id}")
    for button, word, tell in (
        ("Tell me", "Always tell me", "always"),
        ("Told always", "Never tell me", "never"),
        ("Never told", "Tell me by the rules", "default"),
    ):
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("menuitem")).to_have_count(2)
        page.get_by_role("menuitem", name=word).click()
        until(partial(is_told, gateway, id, tell), f"it is {tell}")
    expect(page.get_by_role("button", name="Tell me", exact=True)).to_be_visible()
    expect(page.get_by_text("You are never told of it, chosen by you")).to_be_visible()
    gateway.command("POST", f"/v1/tasks/{id}/stop", {"force": True})
    gateway.until_ended(id)


def test_a_card_and_a_session_are_told_or_not(guest: User) -> None:
    gateway, page, board = guest.gateway, guest.page, new_board(guest.gateway, "telling")
    id = new_card(gateway, board, "Quiet work", triage=True)
    guest.open(f"/board/{board}/{id}")
    choose(page, page, f"Menu of card {label(gateway, id)}", "Never tell me")
    until(lambda: card(gateway, id)["card"]["tell"] == "never" or None, "it is never told")
    expect(page.get_by_text("You are never told of it.")).to_be_visible()
    session = gateway.create("say hello")
    gateway.until_rest(session)
    guest.open(f"/s/{session}")
    conversation = page.get_by_role("region", name="Conversation")  # the list has the same menu
    choose(page, conversation, "Session menu of say hello", "Always tell me")
    expect(page.get_by_text("You are always told of this session")).to_be_visible()
    assert gateway.get(f"/v1/sessions/{session}")["session"]["tell"] == "always"
