"""Web Push: the calling device says where its browser takes pushes, and which notifications it wants."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import parse_body
from holdfast.gateway.responses import json_response
from holdfast.gateway.state import Gateway, device_of, gateway_of
from holdfast.notify.push import PREFIX
from holdfast.notify_settings import USUAL_NOTICES
from holdfast.schemas.notify import PushState, PushSubscribe, PushView
from holdfast.store.device_store import PushRow

routes = Routes("push")


@routes.get("/v1/push", PushState)
async def show_push(request: Request) -> Response:
    """Show the key that a browser subscribes with, and the subscription of this device."""
    gateway = gateway_of(request)
    device = gateway.devices.get(device_of(request)).id
    return json_response(await _state(gateway, device))


@routes.post("/v1/push", PushState, body=PushSubscribe, status=200)
async def subscribe_push(request: Request) -> Response:
    """Send pushes to this device from now on. What is left out of the rules stays as it is."""
    gateway = gateway_of(request)
    device = gateway.devices.get(device_of(request)).id
    given = await parse_body(request, PushSubscribe)
    before = gateway.notify.push.rows.get(device)
    kinds: list[str] = [*USUAL_NOTICES] if before is None else before.kinds
    when_absent, details = (True, False) if before is None else (before.when_absent, before.details)
    row = PushRow(
        device=device,
        endpoint=given.endpoint,
        p256dh=given.keys.p256dh,
        auth=given.keys.auth,
        kinds=kinds if given.on is None else list(dict.fromkeys(given.on)),
        when_absent=when_absent if given.only_when_nobody_looks is None else given.only_when_nobody_looks,
        details=details if given.details is None else given.details,
        changed_at=gateway.clock.now(),
    )
    await gateway.notify.push.save(row)
    return json_response(await _state(gateway, device))


@routes.post("/v1/push", PushState, method="DELETE", status=200)
async def unsubscribe_push(request: Request) -> Response:
    """Send no more pushes to this device."""
    gateway = gateway_of(request)
    device = gateway.devices.get(device_of(request)).id
    await gateway.notify.push.delete(device)
    return json_response(await _state(gateway, device))


async def _state(gateway: Gateway, device: str) -> PushState:
    key = await asyncio.to_thread(gateway.notify.push.key.public)  # it may have to be made
    row = gateway.notify.push.rows.get(device)
    return PushState(key=key, subscription=None if row is None else _shown(row))


def _shown(row: PushRow) -> PushView:
    return PushView(
        destination=f"{PREFIX}{row.device}",
        service=urlsplit(row.endpoint).hostname or "",
        on=list(row.kinds),
        only_when_nobody_looks=row.when_absent,
        details=row.details,
        changed_at=row.changed_at,
        ended=row.ended,
    )
