"""Waits: the inbox, and the answer that is taken exactly once."""

from __future__ import annotations

import asyncio
import json
import logging
import re

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from holdfast.config import ConfigError
from holdfast.domain.commands import AnswerWait
from holdfast.domain.errors import NotFound
from holdfast.edit_settings import allow_always
from holdfast.gateway.answers import answer
from holdfast.gateway.contract import parse_command, returns, takes
from holdfast.gateway.inbox_shapes import Inbox, WaitDetail, Waiting
from holdfast.gateway.routes.sessions import accepted
from holdfast.gateway.state import Gateway, GatewayDep
from holdfast.store.contract import Row

WAIT_ID = re.compile(r"[0-9a-f]{4,12}\Z")
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
    row = await _row(at, wait)
    session = await at.sessions.get(str(row["session"]))
    opened = session.open_call(str(row["call"])) if row["state"] == "open" else None
    return answer(WaitDetail(wait=_waiting(row), arguments="" if opened is None else opened.call.arguments))


@router.post("/answers", **takes(AnswerWait))
async def answer_wait(at: GatewayDep, request: Request) -> Response:
    """Answer a question, an approval or an old turn. Whoever comes second is told who was first."""
    command, caller = await parse_command(request, AnswerWait, subject="")
    row = await _row(at, command.wait)
    session = str(row["session"])
    command = msgspec.structs.replace(command, wait=str(row["id"]))
    appended = await at.sessions.execute(session, command, caller)
    warning = ""
    if command.answer.strip() == "always" and row["purpose"] == "approval":
        warning = await _keep(at, (await at.sessions.get(session)).profile, str(row["pattern"]))
    return accepted(session, appended, caller, message=False, warning=warning)


async def _row(at: Gateway, wait: str) -> Row:
    if not WAIT_ID.match(wait):
        raise NotFound(f"{wait!r} is not the id of a wait.", hint="`holdfast inbox` lists what waits.")
    return await at.store.wait(wait)


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


def _waiting(row: Row) -> Waiting:
    return msgspec.convert(
        row | {"choices": json.loads(str(row["choices"])), "shown": json.loads(str(row["shown"]))}, Waiting
    )
