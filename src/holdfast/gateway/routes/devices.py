"""Devices: signing in and out, read positions, and what happened since."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from holdfast.config import sign_in_file
from holdfast.domain.errors import Conflict
from holdfast.gateway.devices import YEAR_MS, name_of
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import QueryShape, find_session, parse_body, parse_query, session_of
from holdfast.gateway.responses import json_response
from holdfast.gateway.state import Gateway, device_of, gateway_of, origin_of
from holdfast.schemas.devices import (
    AwaySummary,
    DeviceList,
    EndedTasks,
    LoggedIn,
    LogIn,
    OwnDevice,
    ReadPosition,
    RenameDevice,
    Reviewed,
    SignInCode,
)
from holdfast.store.device_store import DeviceRow

YEAR_SECONDS = YEAR_MS // 1000
LOGIN_LIMIT = 4096
"""The largest body that is accepted without a credential, in bytes."""
MAX_CURSOR = 2**62
routes = Routes("devices")


@routes.post("/v1/codes", SignInCode)
async def mint_code(request: Request) -> Response:
    """Create a code that signs one browser in within 10 minutes. It ends with the calling device."""
    gateway = gateway_of(request)
    code = await gateway.devices.add_code(device=device_of(request))
    return json_response(replace(code, urls=list(gateway.public_urls)), status=202)


@routes.post("/v1/login", LoggedIn, body=LogIn)
async def log_in(request: Request) -> Response:
    """Exchange a one-time code for a cookie; only from the dashboard's own page, without a credential.

    A browser that is already signed in stays the same device and gets a new cookie. Wrong codes are not counted: a
    code is too long to be guessed, and attempts of others must not lock out the owner.
    """
    gateway = gateway_of(request)
    given = await parse_body(request, LogIn, limit=LOGIN_LIMIT)
    if await gateway.devices.is_code(given.code):
        request.scope["identified"]()  # so that it is not closed while its cookie is written
    name = name_of(given.name, request.headers.get("user-agent", ""))
    device, secret = await gateway.devices.sign_in(given.code, name, known=device_of(request))
    with suppress(OSError):
        sign_in_file(Path(gateway.home) / "run", given.code).unlink(missing_ok=True)
    found = json_response(LoggedIn(device.id, device.name), status=202)
    found.headers["set-cookie"] = origin_of(request).set_cookie(secret, YEAR_SECONDS)
    return found


@routes.post("/v1/logout", LoggedIn)
async def log_out(request: Request) -> Response:
    """Sign this device out, and delete its read positions."""
    gateway = gateway_of(request)
    device = await _revoke(gateway, device_of(request), request)
    found = json_response(LoggedIn(device.id, device.name), status=202)
    found.headers["set-cookie"] = origin_of(request).set_cookie("", 0)
    return found


@routes.get("/v1/devices", DeviceList)
async def list_devices(request: Request) -> Response:
    """List the browsers that are signed in."""
    gateway = gateway_of(request)
    return json_response(DeviceList(gateway.devices.all(device_of(request))))


@routes.get("/v1/devices/me", OwnDevice)
async def own_device(request: Request) -> Response:
    """Show the calling device. The bearer token is not a device."""
    gateway = gateway_of(request)
    id = device_of(request)
    row = gateway.devices.get(id)
    stored = gateway.store.devices
    shown, last = gateway.devices.shown(row, id), await stored.last_session(id)
    return json_response(OwnDevice(shown, last, await stored.read_positions(id), await stored.reviewed_at(id)))


@routes.post("/v1/looked", Reviewed)
async def looked(request: Request) -> Response:
    """Mark everything as seen on this device. Not stored in the log."""
    gateway = gateway_of(request)
    device = gateway.devices.get(device_of(request)).id
    return json_response(
        Reviewed(await gateway.store.devices.mark_reviewed(device, at=gateway.clock.now())), status=202
    )


@routes.post("/v1/devices/{id}", LoggedIn, method="DELETE")
async def revoke_device(request: Request) -> Response:
    """Sign a device out and end its streams at once."""
    gateway = gateway_of(request)
    id = (await gateway.devices.find(request.path_params["id"])).id
    device = await _revoke(gateway, id, request)
    return json_response(LoggedIn(device.id, device.name), status=202)


async def _revoke(gateway: Gateway, id: str, request: Request) -> DeviceRow:
    if id == device_of(request):
        request.scope["device"] = ""  # so that it still gets this response
    return await gateway.devices.revoke(id)


@routes.post("/v1/devices/{id}", LoggedIn, body=RenameDevice, method="PATCH")
async def rename_device(request: Request) -> Response:
    """Give a device a name of one's own."""
    gateway = gateway_of(request)
    given = await parse_body(request, RenameDevice)
    id = (await gateway.devices.find(request.path_params["id"])).id
    device = await gateway.devices.rename(id, given.name)
    return json_response(LoggedIn(device.id, device.name), status=202)


@routes.post("/v1/seen", ReadPosition, body=ReadPosition)
async def seen(request: Request) -> Response:
    """Set how far this device has read. The position only grows, and is not stored in the log."""
    gateway = gateway_of(request)
    given = await parse_body(request, ReadPosition)
    device = gateway.devices.get(device_of(request)).id
    session = (await find_session(gateway, given.session)).id
    version = await gateway.store.devices.mark_seen(device, session, given.version, at=gateway.clock.now())
    return json_response(ReadPosition(session=session, version=version), status=202)


class AwayQuery(QueryShape, frozen=True):
    """From which version."""

    after: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_CURSOR)] | None,
        Meta(description="By default its read position."),
    ] = None


@routes.get("/v1/sessions/{id}/away", AwaySummary, query=AwayQuery)
async def while_away(request: Request) -> Response:
    """Count what happened in a session after a version."""
    gateway = gateway_of(request)
    row = await session_of(request)
    query = parse_query(request, AwayQuery)
    after, device = query.after, device_of(request)
    if after is None:
        after = min(row.version, await gateway.store.devices.read_position(device, row.id)) if device else 0
    if after > row.version:
        raise Conflict(f"The cursor {after} is ahead of the session, which ends at {row.version}.")
    found = await gateway.store.devices.since(row.id, after=after, upto=row.version)
    shape = AwaySummary(
        after=after,
        version=row.version,
        messages=found.messages,
        first=found.first,
        since=found.since,
        looked_at=await gateway.store.devices.looked_at(device, row.id) if device else 0,
        tool_calls=found.tool_calls,
        tasks=EndedTasks(**found.tasks),
        questions=found.questions,
        failures=found.failures,
    )
    return json_response(shape)
