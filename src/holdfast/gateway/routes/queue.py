"""The queue: messages that no turn has taken yet can be changed, moved and taken back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.domain.commands import ReviseInput, WithdrawInput
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import caller_of, parse_body, session_of
from holdfast.gateway.responses import accepted
from holdfast.gateway.state import gateway_of
from holdfast.schemas.sessions import Accepted, QueueEdit

routes = Routes("queue")


@routes.command("/v1/sessions/{id}/queue/{input}", QueueEdit, method="PATCH")
async def revise_input(request: Request) -> Response:
    """Change the text, the mode or the place of a queued message; 409 when a turn has taken it."""
    row, input = await session_of(request), request.path_params["input"]
    edit = await parse_body(request, QueueEdit)
    return await _execute(row.id, request, ReviseInput(input=input, text=edit.text, mode=edit.mode, place=edit.place))


@routes.command("/v1/sessions/{id}/queue/{input}", None, method="DELETE")
async def withdraw_input(request: Request) -> Response:
    """Take a queued message back; 409 when a turn has taken it."""
    row, input = await session_of(request), request.path_params["input"]
    return await _execute(row.id, request, WithdrawInput(input=input))


async def _execute(session: str, request: Request, command: ReviseInput | WithdrawInput) -> Response:
    caller = caller_of(request, command, subject=session)
    return accepted(Accepted, await gateway_of(request).sessions.execute(session, command, caller))
