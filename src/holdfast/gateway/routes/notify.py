"""Notifications: the destinations, what was sent there, tests, and who looks at what."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from holdfast.domain.errors import NotFound
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import QueryShape, parse_body, parse_query
from holdfast.gateway.responses import json_response
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.notify.channel import GiveUp, Sent
from holdfast.notify.conversation import NOTICES_IN_CHAT
from holdfast.notify.destinations import Destination
from holdfast.notify.presence import LOOKING_MS
from holdfast.notify.push import PREFIX, TURN_ON_AGAIN
from holdfast.schemas.notify import (
    DeliveryList,
    DeliveryView,
    DestinationList,
    DestinationView,
    Looked,
    Looking,
    TestNotice,
    TestResult,
)
from holdfast.store.device_store import PushRow
from holdfast.store.outbox_store import DeliveryRow

NONE_YET = "Add [notify.webhooks.NAME] to config.toml, or turn notifications on in the settings of the dashboard."
TEST = "this is a test: notifications arrive here"
routes = Routes("notify")


@routes.get("/v1/notify", DestinationList)
async def list_destinations(request: Request) -> Response:
    """List the destinations of notifications, and what waits for each."""
    gateway = gateway_of(request)
    summaries = await gateway.store.outbox.summaries()
    found = [
        await _destination(gateway, one, *summaries.get(one.name, (0, 0)))
        for one in gateway.notify.destinations.all().values()
    ]
    talked = max((at for name, (at, _) in summaries.items() if name.startswith("telegram:")), default=0)
    if (chats := await _chats(gateway, talked)) is not None:
        found.append(chats)
    ended = (row for row in gateway.notify.push.rows.values() if row.ended)
    gone = [_ended(gateway, row, *summaries.get(f"{PREFIX}{row.device}", (0, 0))) for row in ended]
    return json_response(DestinationList(found + gone))


async def _chats(gateway: Gateway, sent_at: int) -> DestinationView | None:
    """The chats of Telegram in which sessions are held, as one; None when it is not set up."""
    if not gateway.notify.telegram.is_on:
        return None
    return DestinationView(
        name="telegram",
        on=["answer", *sorted(NOTICES_IN_CHAT)],
        only_when_nobody_looks=False,
        details=True,
        home_channel=False,
        pending=await gateway.store.outbox.count_pending("telegram:"),
        problem=gateway.notify.updates.state.problem,
        label="conversations",
        sent_at=sent_at,
    )


def _label(gateway: Gateway, destination: str) -> str:
    device = destination.removeprefix(PREFIX)
    return gateway.devices.get(device).name if device != destination and gateway.devices.knows(device) else ""


def _ended(gateway: Gateway, row: PushRow, sent_at: int, given_up: int) -> DestinationView:
    """A device that takes no pushes any longer."""
    return DestinationView(
        name=f"{PREFIX}{row.device}",
        on=sorted(row.kinds),
        only_when_nobody_looks=row.when_absent,
        details=row.details,
        home_channel=False,
        pending=0,
        problem=f"{row.ended} {TURN_ON_AGAIN}",
        label=_label(gateway, f"{PREFIX}{row.device}"),
        sent_at=sent_at,
        given_up=given_up,
        ended=True,
    )


async def _destination(gateway: Gateway, destination: Destination, sent_at: int, given_up: int) -> DestinationView:
    pending = await gateway.store.outbox.pending(destination.name)
    return DestinationView(
        name=destination.name,
        on=sorted(destination.on),
        only_when_nobody_looks=destination.when_absent,
        details=destination.details,
        home_channel=gateway.profiles.settings.notify.home_channel == destination.name,
        pending=len(pending),
        problem=next((row.error for row in pending if row.attempts), ""),
        label=_label(gateway, destination.name),
        sent_at=sent_at,
        given_up=given_up,
    )


class DeliveriesQuery(QueryShape, frozen=True):
    """Which deliveries."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    destination: str = ""


@routes.get("/v1/notify/log", DeliveryList, query=DeliveriesQuery)
async def list_deliveries(request: Request) -> Response:
    """List what was sent, what waits and what was not sent, newest first."""
    gateway = gateway_of(request)
    query = parse_query(request, DeliveriesQuery)
    rows = await gateway.store.outbox.history(limit=query.limit, destination=query.destination)
    mask = gateway.profiles.mask
    return json_response(DeliveryList([_delivery(row, mask(row.title), mask(row.summary)) for row in rows]))


def _delivery(row: DeliveryRow, title: str, summary: str) -> DeliveryView:
    return DeliveryView(
        id=row.id,
        destination=row.destination,
        kind=row.kind,
        at=row.at,
        title=title,
        summary=summary,
        link=row.link,
        state=row.state,
        attempts=row.attempts,
        due_at=row.due_at,
        changed_at=row.changed_at,
        reason=row.error,
        settled=row.settled,
    )


@routes.post("/v1/notify/test", TestResult, body=TestNotice, status=200)
async def test_destination(request: Request) -> Response:
    """Send a test to a destination at once, and report what became of it."""
    gateway = gateway_of(request)
    given = await parse_body(request, TestNotice)
    known = gateway.notify.destinations.all()
    names = (f"{prefix}{given.destination}" for prefix in ("", "webhooks.", "apprise.", PREFIX))
    destination = next((known[name] for name in names if name in known), None)
    if destination is None:
        hint = f"There is: {', '.join(known)}." if known else NONE_YET
        raise NotFound(f"There is no destination {given.destination!r}.", hint=hint)
    result = await gateway.notify.sender.send_now(destination, "test", TEST)
    problem = "" if isinstance(result, Sent) else result.problem
    hint = result.hint if isinstance(result, GiveUp) else ""
    return json_response(
        TestResult(destination=destination.name, sent=isinstance(result, Sent), problem=problem, hint=hint)
    )


@routes.post("/v1/looking", Looked, body=Looking, status=200)
async def looking(request: Request) -> Response:
    """Report that somebody looks at these now: they are not notified of what they see."""
    gateway = gateway_of(request)
    given = await parse_body(request, Looking)
    gateway.notify.presence.look(given.streams)
    return json_response(Looked(for_ms=LOOKING_MS))
