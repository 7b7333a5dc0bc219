"""What the tests of the board share."""

from __future__ import annotations

from tests.e2e.gateway import GatewayProcess, Json, until
from tests.eventually import PATIENCE


def create_card(gateway: GatewayProcess, body: str, *, key: str | None = None, **more: object) -> str:
    accepted = gateway.command("POST", "/v1/cards", {"title": "a card", "body": body, **more}, key=key)
    return str(accepted["card"])


def tell_card(
    gateway: GatewayProcess, card: str, verb: str, body: Json | None = None, *, key: str | None = None
) -> Json:
    return gateway.command("POST", f"/v1/cards/{card}/{verb}", body or {}, key=key)


def detail(gateway: GatewayProcess, card: str) -> Json:
    return dict(gateway.get(f"/v1/cards/{card}"))


def until_card(gateway: GatewayProcess, card: str, *statuses: str, seconds: float = PATIENCE) -> Json:
    return until(
        lambda: found if (found := detail(gateway, card))["card"]["status"] in statuses else None,
        f"card {card} is {' or '.join(statuses)}",
        seconds=seconds,
    )


def why_card(gateway: GatewayProcess, card: str) -> str:
    return str(gateway.get(f"/v1/cards/{card}/why")["sentences"][0]["text"])
