"""Responses: JSON made by msgspec, and one struct for every error."""

from __future__ import annotations

import logging

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ExceptionHandler

from holdfast.domain.errors import (
    Conflict,
    Corrupt,
    Gone,
    HoldfastError,
    NodeAway,
    NotFound,
    NotReady,
    Rejected,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from holdfast.schemas.gateway import Error, ErrorDetail
from holdfast.store.contract import Appended

log = logging.getLogger(__name__)
encode = msgspec.json.Encoder().encode


def error_body(code: str, message: str, hint: str = "") -> bytes:
    """Return an error as JSON."""
    return encode(Error(ErrorDetail(code, message, hint)))


def json_response(value: object, *, status: int = 200) -> Response:
    """Return any value as JSON."""
    return Response(encode(value), status_code=status, media_type="application/json")


def accepted(shape: type[msgspec.Struct], appended: Appended, **more: object) -> Response:
    """Return the response to a committed command. Its details were stored with it, so a retry gets the same."""
    noun, _, id = appended.stream.partition("/")
    place = {"stream": appended.stream, "version": appended.version, "seq": appended.seq}
    usual = {"session": "", "input": None, noun: id, "duplicate": appended.duplicate}
    said = usual | place | msgspec.json.decode(appended.reply) | more
    return json_response(msgspec.convert(said, shape), status=202)


def error_response(status: int, code: str, message: str, *, hint: str = "", retry_after: int | None = None) -> Response:
    """Return an error response."""
    headers = {"retry-after": str(retry_after)} if retry_after is not None else None
    return Response(error_body(code, message, hint), status, headers, media_type="application/json")


def response_to(error: HoldfastError) -> Response:
    """Return the response to an error, by its class."""
    match error:
        case Gone():
            status, code = 410, "gone"
        case NotFound():
            status, code = 404, "not_found"
        case TooLarge():
            status, code = 413, "too_large"
        case Unauthorized():
            status, code = 401, "unauthorized"
        case Rejected():
            status, code = 400, "bad_request"
        case Conflict():
            status, code = 409, "conflict"
        case NotReady(retry_after=seconds):
            return error_response(503, "not_ready", error.message, hint=error.hint, retry_after=seconds)
        case NodeAway(retry_after=seconds):
            return error_response(504, "node_away", error.message, hint=error.hint, retry_after=seconds)
        case Unavailable(retry_after=seconds):
            return error_response(507, "unavailable", error.message, hint=error.hint, retry_after=seconds)
        case Corrupt():
            status, code = 500, "corrupt"
        case _:
            status, code = 500, "internal"
    return error_response(status, code, error.message, hint=error.hint)


async def _of_ours(_: Request, error: Exception) -> Response:
    assert isinstance(error, HoldfastError)
    return response_to(error)


async def _of_starlette(request: Request, error: Exception) -> Response:
    """Return the response when no route matches the path or the method."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "bad_request")
    hint = "GET /v1/openapi.json lists the routes."
    response = error_response(error.status_code, code, str(error.detail), hint=hint)
    if error.status_code == 405:
        response.headers["allow"] = ", ".join(_allowed_methods(request))
    return response


def _allowed_methods(request: Request) -> list[str]:
    routes: list[BaseRoute] = request.app.routes
    fits = [one for one in routes if isinstance(one, Route) and one.matches(request.scope)[0] is not Match.NONE]
    here = [route for route in fits if route.path == fits[0].path]  # the most specific one comes first
    return sorted({method for route in here for method in route.methods or ()})


async def _of_bug(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(500, "internal", "Internal error.", hint="`holdfast logs` has the details.")


ERROR_HANDLERS: dict[type[Exception], ExceptionHandler] = {
    HoldfastError: _of_ours,
    HTTPException: _of_starlette,
    Exception: _of_bug,
}
"""Every error becomes a response of the same shape."""
