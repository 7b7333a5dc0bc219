"""The queue: messages that no turn has taken yet can be changed, moved and taken back."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from holdfast.domain.commands import ReviseInput, WithdrawInput
from holdfast.gateway.contract import body, caller_of, takes
from holdfast.gateway.paths import SessionDep
from holdfast.gateway.routes.sessions import accepted
from holdfast.gateway.shapes import QueueEdit
from holdfast.gateway.state import Gateway, GatewayDep

router = APIRouter(prefix="/v1", tags=["queue"])


@router.patch("/sessions/{id}/queue/{input}", **takes(QueueEdit))
async def revise_input(at: GatewayDep, row: SessionDep, input: str, request: Request) -> Response:
    """Change the text, the mode or the place of a queued message; 409 when a turn has taken it."""
    edit = await body(request, QueueEdit)
    return await _execute(
        at, row.id, request, ReviseInput(input=input, text=edit.text, mode=edit.mode, place=edit.place)
    )


@router.delete("/sessions/{id}/queue/{input}", **takes(None))
async def withdraw_input(at: GatewayDep, row: SessionDep, input: str, request: Request) -> Response:
    """Take a queued message back; 409 when a turn has taken it."""
    return await _execute(at, row.id, request, WithdrawInput(input=input))


async def _execute(at: Gateway, session: str, request: Request, command: ReviseInput | WithdrawInput) -> Response:
    caller = caller_of(request, command, subject=session)
    return accepted(session, await at.sessions.execute(session, command, caller), caller, message=False)
