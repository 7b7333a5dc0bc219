"""Devices: signing in and out, who is signed in, how far each has read, what it missed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from holdfast.config import sign_in_file
from holdfast.domain.errors import Conflict
from holdfast.gateway.answers import answer
from holdfast.gateway.contract import body, returns, takes
from holdfast.gateway.devices import YEAR_MS, name_of
from holdfast.gateway.door_shapes import (
    Away,
    DeviceList,
    EndedTasks,
    LoggedIn,
    LogIn,
    Looked,
    OwnDevice,
    Seen,
    SignInCode,
)
from holdfast.gateway.paths import SessionDep, find_session
from holdfast.gateway.state import Gateway, GatewayDep, address_of, device_of
from holdfast.store.device_contract import DeviceRow

YEAR_SECONDS = YEAR_MS // 1000
LOGIN_LIMIT = 4096
"""Bytes of a body that anybody may send."""
MAX_CURSOR = 2**62
router = APIRouter(prefix="/v1", tags=["devices"])


@router.post("/codes", **takes(None, SignInCode, keyed=False))
async def mint_code(at: GatewayDep, request: Request) -> Response:
    """A one-time code that signs one browser in, for 10 minutes; it ends with the device that asks for it."""
    return answer(await at.devices.add_code(device=device_of(request)), status=202)


@router.post("/login", **takes(LogIn, LoggedIn, keyed=False))
async def log_in(at: GatewayDep, request: Request) -> Response:
    """Exchange a one-time code for a cookie; from our own page only, without a credential.

    A browser that is signed in already stays the same device, with a new cookie. Wrong codes are not counted: a code
    is too long to be guessed, and whoever holds the right one must not wait for strangers.
    """
    given = await body(request, LogIn, limit=LOGIN_LIMIT)
    if at.devices.is_code(given.code):
        request.scope["identified"]()  # it is not cut as a stranger while its cookie is written
    name = name_of(given.name, request.headers.get("user-agent", ""))
    device, secret = await at.devices.sign_in(given.code, name, known=device_of(request))
    with suppress(OSError):
        sign_in_file(Path(at.home) / "run", given.code).unlink(missing_ok=True)
    found = answer(LoggedIn(device.id, device.name), status=202)
    found.headers["set-cookie"] = address_of(request).set_cookie(secret, YEAR_SECONDS)
    return found


@router.post("/logout", **takes(None, LoggedIn, keyed=False))
async def log_out(at: GatewayDep, request: Request) -> Response:
    """Forget this device, its cookie and its cursors."""
    device = await _revoke(at, device_of(request), request)
    found = answer(LoggedIn(device.id, device.name), status=202)
    found.headers["set-cookie"] = address_of(request).set_cookie("", 0)
    return found


@router.get("/devices", **returns(DeviceList))
async def list_devices(at: GatewayDep, request: Request) -> Response:
    """Every browser that is signed in."""
    return answer(DeviceList(at.devices.all(device_of(request))))


@router.get("/devices/me", **returns(OwnDevice))
async def own_device(at: GatewayDep, request: Request) -> Response:
    """The device that asks; the bearer token is none."""
    id = device_of(request)
    row = at.devices.get(id)
    kept = at.store.devices
    shown, last = at.devices.shown(row, id), await kept.last_session(id)
    return answer(OwnDevice(shown, last, await kept.cursors(id), await kept.reviewed_at(id)))


@router.post("/looked", **takes(None, Looked, keyed=False))
async def looked(at: GatewayDep, request: Request) -> Response:
    """Somebody looked through what happened on this device; not in the log."""
    device = at.devices.get(device_of(request)).id
    return answer(Looked(await at.store.devices.mark_reviewed(device, at=at.clock.now())), status=202)


@router.delete("/devices/{id}", **takes(None, LoggedIn, keyed=False))
async def revoke_device(at: GatewayDep, id: str, request: Request) -> Response:
    """Sign a device out: its cookie is dead at once, and what it follows is cut."""
    device = await _revoke(at, at.devices.find(id).id, request)
    return answer(LoggedIn(device.id, device.name), status=202)


async def _revoke(at: Gateway, id: str, request: Request) -> DeviceRow:
    if id == device_of(request):
        request.scope["device"] = ""  # it may still hear that it is gone
    return await at.devices.revoke(id)


@router.post("/seen", **takes(Seen, Seen, keyed=False))
async def seen(at: GatewayDep, request: Request) -> Response:
    """How far this device has read. The cursor only grows; it is not in the log."""
    given = await body(request, Seen)
    device = at.devices.get(device_of(request)).id
    session = (await find_session(at, given.session)).id
    version = await at.store.devices.mark_seen(device, session, given.version, at=at.clock.now())
    return answer(Seen(session=session, version=version), status=202)


@router.get("/sessions/{id}/away", **returns(Away))
async def while_away(
    at: GatewayDep,
    row: SessionDep,
    request: Request,
    after: Annotated[int | None, Query(ge=0, le=MAX_CURSOR, description="By default the device's own cursor.")] = None,
) -> Response:
    """What happened after a version, in numbers."""
    if after is None:
        device = device_of(request)
        after = min(row.version, await at.store.devices.cursor(device, row.id)) if device else 0
    if after > row.version:
        raise Conflict(f"The cursor {after} is ahead of the session, which ends at {row.version}.")
    found = await at.store.devices.since(row.id, after=after, upto=row.version)
    shape = Away(
        after=after,
        version=row.version,
        messages=found.messages,
        first=found.first,
        since=found.since,
        tool_calls=found.tool_calls,
        tasks=EndedTasks(**found.tasks),
        questions=found.questions,
        failures=found.failures,
    )
    return answer(shape)
