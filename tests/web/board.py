"""Boards and cards for a browser to look at."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.e2e.gateway import GatewayProcess, Json
from tests.web.user import User


def new_board(gateway: GatewayProcess, name: str, *, paused: bool = False) -> str:
    """Each test has its own. On one that is paused cards stay where they are put."""
    gateway.command("POST", "/v1/boards", {"board": name, "title": name.capitalize()})
    if paused:
        gateway.command("POST", f"/v1/boards/{name}/pause", {})
    return name


def new_card(gateway: GatewayProcess, board: str, title: str, body: str = "", **more: object) -> str:
    return str(gateway.command("POST", "/v1/cards", {"title": title, "body": body, "board": board} | more)["card"])


def label(gateway: GatewayProcess, id: str) -> str:
    """What people call it: `HF-118`."""
    return f"HF-{card(gateway, id)['card']['number']}"


def card(gateway: GatewayProcess, id: str) -> Json:
    found: Json = gateway.get(f"/v1/cards/{id}")
    return found


def status(gateway: GatewayProcess, id: str) -> str:
    return str(card(gateway, id)["card"]["status"])


def column(page: Page, name: str) -> Locator:
    return page.locator(f'[data-column="{name}"]')


def drag(page: Page, title: str, to: str) -> None:
    box = page.locator("[data-card]", has_text=title).bounding_box()
    end = column(page, to).bounding_box()
    assert box and end
    page.mouse.move(box["x"] + 40, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 30, steps=3)
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + 60, steps=8)
    expect(column(page, to)).to_have_attribute("data-over", "true")  # a hand is slower than this
    page.mouse.up()


def over(user: User, id: str, stands: str) -> None:
    """The card stands there, and its worker has said its last word."""
    user.until(lambda: status(user.gateway, id) == stands, f"it is {stands}")
    session = card(user.gateway, id)["card"]["session"]
    user.until(lambda: user.gateway.get(f"/v1/sessions/{session}")["session"]["state"] == "idle", "it rests")
