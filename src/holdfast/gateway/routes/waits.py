"""The inbox, and answers to waits. Only the first answer counts."""

from __future__ import annotations

import logging

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.config import ConfigError
from holdfast.domain.commands import AnswerWait
from holdfast.domain.errors import NotFound, Unavailable
from holdfast.edit_settings import allow_always
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import find_wait, parse_command, person_name
from holdfast.gateway.responses import accepted, json_response
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.schemas.inbox import Inbox, WaitDetail, WaitView
from holdfast.schemas.sessions import Accepted
from holdfast.store.rows import TitledWait

SHOWN = 500
log = logging.getLogger(__name__)
routes = Routes("waits")


@routes.get("/v1/inbox", Inbox)
async def inbox(request: Request) -> Response:
    """List everything that waits for a person, longest waiting first."""
    gateway = gateway_of(request)
    entries, waits = await gateway.dispatcher.inbox.entries(), await gateway.store.waits()
    return json_response(
        Inbox(entries=entries[:SHOWN], total=len(entries), waits=[_waiting(row) for row in waits[:SHOWN]])
    )


@routes.get("/v1/inbox/{wait}", WaitDetail)
async def waiting(request: Request) -> Response:
    """Show a wait, or what a session waits for, with the full arguments of its call."""
    gateway = gateway_of(request)
    row = await _wait_or_session(gateway, request.path_params["wait"])
    session = await gateway.sessions.get(row.session)
    opened = session.open_call(row.call) if row.state == "open" else None
    return json_response(WaitDetail(wait=_waiting(row), arguments="" if opened is None else opened.call.arguments))


async def _wait_or_session(gateway: Gateway, prefix: str) -> TitledWait:
    """Return the wait with this id or unique prefix, else the open one of the session with it."""
    try:
        return await find_wait(gateway, prefix)
    except NotFound:
        found = [row for row in await gateway.store.waits() if row.session.startswith(prefix)]
        if len(found) != 1:
            raise
        return found[0]


@routes.command("/v1/answers", AnswerWait)
async def answer_wait(request: Request) -> Response:
    """Answer a question, an approval or an interrupted turn. A second answer is refused and names the first."""
    gateway = gateway_of(request)
    command, caller = await parse_command(request, AnswerWait, subject="")
    row = await find_wait(gateway, command.wait)
    command = msgspec.structs.replace(command, wait=row.id)
    appended = await gateway.sessions.execute(row.session, command, caller)
    warning = ""
    if command.answer.strip() == "always" and row.purpose == "approval":
        profile = (await gateway.sessions.get(row.session)).profile
        warning = await _keep(gateway, profile, row.pattern, by=person_name(request))
    return accepted(Accepted, appended, warning=warning)


async def _keep(gateway: Gateway, profile: str, pattern: str, *, by: str) -> str:
    """Write the permission into the profile; return why that failed, if it did. In the session the answer counts."""
    known = gateway.profiles.settings.profiles.get(profile)
    if known is None:
        problem = f"the profile {profile!r} no longer exists."
    else:
        try:
            await gateway.profiles.edit(allow_always(profile, pattern, model=known.model), by=by)
            return ""
        except (ConfigError, Unavailable) as error:
            problem = str(error)
    log.error("profile %s could not be changed to allow %s: %s", profile, pattern, problem)
    return f"Allowed in this session only; it could not be saved: {problem}"


def _waiting(row: TitledWait) -> WaitView:
    return msgspec.convert(row, WaitView, from_attributes=True)
