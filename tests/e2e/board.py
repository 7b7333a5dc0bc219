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


def most_at_work(log: list[Json]) -> int:
    """How many cards at most had an open run, or were assigned to a node, after the same event of the whole log."""
    most = 0
    at_work: set[str] = set()
    for record in log:
        event = record["event"]
        if event["kind"] == "RunStarted" or (event["kind"] == "RunAssigned" and event["node"]):
            at_work.add(event["card"])
        elif event["kind"] in ("RunAssigned", "RunFinished"):
            at_work.discard(event["card"])
        most = max(most, len(at_work))
    return most
