"""Answers: JSON made by msgspec, and one shape for every error."""

from __future__ import annotations

import logging

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route

from holdfast.domain.errors import (
    Conflict,
    Corrupt,
    Gone,
    HoldfastError,
    NotFound,
    NotReady,
    Rejected,
    TooLarge,
    Unauthorized,
    Unavailable,
)

log = logging.getLogger(__name__)
encode = msgspec.json.Encoder().encode


class ErrorDetail(msgspec.Struct, frozen=True):
    """What went wrong and what to do next."""

    code: str
    message: str
    hint: str


class Error(msgspec.Struct, frozen=True):
    """The shape of every error."""

    error: ErrorDetail


def error_body(code: str, message: str, hint: str = "") -> bytes:
    """An error as JSON."""
    return encode(Error(ErrorDetail(code, message, hint)))


def answer(value: object, *, status: int = 200) -> Response:
    """Any value as JSON."""
    return Response(encode(value), status_code=status, media_type="application/json")


def refuse(status: int, code: str, message: str, *, hint: str = "", retry_after: int | None = None) -> Response:
    """An error as an answer."""
    headers = {"retry-after": str(retry_after)} if retry_after is not None else None
    return Response(error_body(code, message, hint), status, headers, media_type="application/json")


def of_error(error: HoldfastError) -> Response:
    """The answer to an error of ours, by its class."""
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
            return refuse(503, "not_ready", error.message, hint=error.hint, retry_after=seconds)
        case Unavailable(retry_after=seconds):
            return refuse(507, "unavailable", error.message, hint=error.hint, retry_after=seconds)
        case Corrupt():
            status, code = 500, "corrupt"
        case _:
            status, code = 500, "internal"
    return refuse(status, code, error.message, hint=error.hint)


def handle_errors(app: FastAPI, routes: list[Route]) -> None:
    """One shape for whatever goes wrong."""

    async def ours(_: Request, error: Exception) -> Response:
        assert isinstance(error, HoldfastError)
        return of_error(error)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "bad_request")
        answer = refuse(error.status_code, code, str(error.detail), hint="GET /v1/openapi.json lists the routes.")
        if error.status_code == 405:
            fits = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
            here = [route for route in fits if route.path == fits[0].path]  # the most exact one comes first
            answer.headers["allow"] = ", ".join(sorted(method for route in here for method in route.methods or ()))
        return answer

    async def parameters(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return refuse(400, "bad_request", f"{where}: {first['msg']}.")

    async def bug(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return refuse(500, "internal", "An internal error.", hint="`holdfast logs` has the details.")

    app.add_exception_handler(HoldfastError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, parameters)
    app.add_exception_handler(Exception, bug)
