"""Waits: the inbox, and the answer that is taken exactly once."""

from __future__ import annotations

import asyncio
import logging

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from holdfast.config import ConfigError
from holdfast.domain.commands import AnswerWait
from holdfast.edit_settings import allow_always
from holdfast.gateway.answers import answer
from holdfast.gateway.contract import parse_command, returns, takes
from holdfast.gateway.inbox_shapes import Inbox, WaitDetail, Waiting
from holdfast.gateway.paths import find_wait
from holdfast.gateway.routes.sessions import accepted
from holdfast.gateway.state import Gateway, GatewayDep
from holdfast.store.rows import TitledWait

SHOWN = 500
log = logging.getLogger(__name__)
router = APIRouter(prefix="/v1", tags=["waits"])


@router.get("/inbox", **returns(Inbox))
async def inbox(at: GatewayDep) -> Response:
    """Everything that waits for a person, longest waiting first."""
    entries, waits = await at.dispatcher.inbox.entries(), await at.store.waits()
    return answer(Inbox(entries=entries[:SHOWN], total=len(entries), waits=[_waiting(row) for row in waits[:SHOWN]]))


@router.get("/inbox/{wait}", **returns(WaitDetail))
async def waiting(at: GatewayDep, wait: str) -> Response:
    """One of them by its id or a prefix of it, with the whole arguments of the call."""
    row = await find_wait(at, wait)
    session = await at.sessions.get(row.session)
    opened = session.open_call(row.call) if row.state == "open" else None
    return answer(WaitDetail(wait=_waiting(row), arguments="" if opened is None else opened.call.arguments))


@router.post("/answers", **takes(AnswerWait))
async def answer_wait(at: GatewayDep, request: Request) -> Response:
    """Answer a question, an approval or an old turn. Whoever comes second is told who was first."""
    command, caller = await parse_command(request, AnswerWait, subject="")
    row = await find_wait(at, command.wait)
    command = msgspec.structs.replace(command, wait=row.id)
    appended = await at.sessions.execute(row.session, command, caller)
    warning = ""
    if command.answer.strip() == "always" and row.purpose == "approval":
        warning = await _keep(at, (await at.sessions.get(row.session)).profile, row.pattern)
    return accepted(row.session, appended, caller, message=False, warning=warning)


async def _keep(at: Gateway, profile: str, pattern: str) -> str:
    """Write the permission into the profile. Why that was not possible, if so; in the session the answer counts."""
    known = at.profiles.settings.profiles.get(profile)
    if known is None:
        problem = f"there is no profile {profile!r} any more."
    else:
        try:
            await asyncio.to_thread(allow_always, at.profiles.path, profile, pattern, model=known.model)
            return ""
        except ConfigError as error:
            problem = str(error)
    log.error("profile %s could not be changed to allow %s: %s", profile, pattern, problem)
    return f"Allowed in this session only, not always: {problem}"


def _waiting(row: TitledWait) -> Waiting:
    return msgspec.convert(row, Waiting, from_attributes=True)
