"""The contract: request bodies read strictly, and every shape in the OpenAPI document.

The types are the domain's own structs; msgspec checks them and describes them. FastAPI routes.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from typing import Any, TypeVar

import msgspec
from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi

from holdfast import __version__
from holdfast.domain.command import TEXT_LIMIT, Command
from holdfast.domain.commands import AnyCommand
from holdfast.domain.errors import NotReady, Rejected, TooLarge, Unavailable
from holdfast.domain.events.actor import PersonActor
from holdfast.gateway.answers import Error
from holdfast.gateway.guard import PUBLIC
from holdfast.gateway.shapes import SHAPES, Accepted
from holdfast.gateway.state import device_of, gateway_of
from holdfast.sessions import Caller
from holdfast.store.contract import CommandKey

BODY_LIMIT = 8 * 1024 * 1024
COMMAND_ID = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")
C = TypeVar("C", bound=Command)
S = TypeVar("S", bound=msgspec.Struct)


ERRORS = {
    400: "malformed, a wrong value or an unknown field",
    401: "no credential, or a wrong one",
    403: "a foreign origin",
    404: "no such thing",
    409: "a conflict: ambiguous, lost race, or not possible in this state",
    410: "it was deleted",
    413: "over a limit",
    421: "a foreign host",
    500: "our fault",
    503: "not yet: it is starting, or another program keeps the database locked",
    507: "the disk takes no writes now",
}


async def parse_command(request: Request, shape: type[C], *, subject: str) -> tuple[C, Caller]:
    """The command in the body, and who gave it under which id."""
    command = await body(request, shape)
    return command, caller_of(request, command, subject=subject)


async def body(request: Request, shape: type[S], *, limit: int = BODY_LIMIT) -> S:
    """The body, read strictly."""
    return _decode(await _read(request, limit), shape)


def caller_of(request: Request, command: Command, *, subject: str) -> Caller:
    """Who gives this command, under which id. NotReady while the gateway has not found out yet what is open."""
    gateway = gateway_of(request)
    if not gateway.recovered.is_set():
        if not gateway.store.health.writable:
            raise Unavailable(gateway.store.health.problem, hint="It goes on by itself when that is over.")
        raise NotReady("The gateway is starting: it is finding out what became of its work.", hint="Try again.")
    given = request.headers.getlist("idempotency-key")
    if len(given) > 1 or (given and not COMMAND_ID.match(given[0])):
        raise Rejected("Idempotency-Key must be 8 to 64 letters, digits, - or _.")
    id = given[0] if given else f"{time.time_ns() // 1_000_000:011x}{secrets.token_hex(10)}"
    asked = f"{type(command).__name__}\n{subject}\n".encode() + msgspec.json.encode(command)
    return Caller(CommandKey(id, hashlib.sha256(asked).hexdigest()), by_whom(request))


def by_whom(request: Request) -> PersonActor:
    """The person who asks, and through which client."""
    if device := device_of(request):
        return PersonActor(client="web", device=device)
    agent = request.headers.get("user-agent", "")
    return PersonActor(client="cli" if agent.startswith("holdfast-cli/") else "api")


async def _read(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise _too_large(limit)
    return bytes(body)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The request is larger than {limit >> 20} MiB." if limit >> 20 else f"It is larger than {limit >> 10} KiB.",
        hint="Write long text into a file and name the file in the message.",
    )


def _decode(body: bytes, shape: type[S]) -> S:
    try:
        return msgspec.json.decode(body or b"{}", type=shape)
    except msgspec.ValidationError as error:
        if f"length <= {TEXT_LIMIT}" in str(error):
            message = f"A message has at most {TEXT_LIMIT} characters."
            raise TooLarge(message, hint="Write long text into a file and name the file in the message.") from error
        raise Rejected(f"{error}.") from error
    except msgspec.DecodeError as error:
        raise Rejected(f"The body is not JSON: {error}.") from error
    except UnicodeDecodeError as error:
        raise Rejected(f"The body is not UTF-8: {error}.") from error


# --- OpenAPI --------------------------------------------------------------------------------------


def _reference(shape: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{shape.__name__}"}


def _json(shape: type) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": _reference(shape)}}}


def returns(shape: type, *, status: int = 200, media: tuple[str, ...] = ()) -> dict[str, Any]:
    """The keywords of a route that answers this."""
    success = {"description": (shape.__doc__ or "").strip()} | _json(shape)
    for kind in media:
        success["content"][kind] = {"schema": {"type": "string"}}
    responses: dict[int | str, Any] = {status: success}
    responses |= {code: {"description": words} | _json(Error) for code, words in ERRORS.items()}
    return {"status_code": status, "responses": responses}


KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Minted by the client: a retry under the same id is stored once.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,64}$"},
}


def takes(shape: type[msgspec.Struct] | None, gives: type = Accepted, *, keyed: bool = True) -> dict[str, Any]:
    """The keywords of a route that takes this command, and is answered when it is committed."""
    extra: dict[str, Any] = {"parameters": [KEY] if keyed else []}
    if shape is not None:
        required = any(field.required for field in msgspec.structs.fields(shape))
        extra["requestBody"] = {"required": required} | _json(shape)
    return returns(gives, status=202) | {"openapi_extra": extra}


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: routes by FastAPI, shapes by msgspec."""
    document = get_openapi(title="Holdfast", version=__version__, routes=app.routes, description=app.description)
    shapes = [*SHAPES, *AnyCommand.__args__]
    _, components = msgspec.json.schema_components(shapes, ref_template="#/components/schemas/{name}")
    for command in AnyCommand.__args__:
        components[command.__name__]["required"] = [
            field.encode_name for field in msgspec.structs.fields(command) if field.required
        ]
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas.clear()
    schemas.update(components)
    document["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"bearer": []}]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            if path in PUBLIC:
                operation["security"] = []
    return document
