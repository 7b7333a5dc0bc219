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
from holdfast.domain.commands import TEXT_LIMIT, AnyCommand, Command
from holdfast.domain.errors import Rejected, TooLarge
from holdfast.domain.events import Record
from holdfast.gateway.answers import Error
from holdfast.gateway.guard import PUBLIC
from holdfast.runtime.sessions import Caller
from holdfast.store.port import CommandKey

BODY_LIMIT = 8 * 1024 * 1024
COMMAND_ID = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")
C = TypeVar("C", bound=Command)


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command was committed. `input` is the id of the message, if it carried one."""

    session: str
    stream: str
    version: int
    seq: int
    input: str | None
    duplicate: bool


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list."""

    id: str
    title: str
    profile: str
    model: str
    cwd: str
    parent: str
    created_at: int
    updated_at: int
    version: int
    archived: bool
    message_count: int
    queued: int
    turn: int
    turn_state: str | None
    state: str
    preview: str


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of a session."""

    turn: int
    state: str
    started_at: int
    finished_at: int | None
    steps: int
    resumes: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    reason: str


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """A message that no turn has taken yet."""

    input: str
    text: str
    mode: str
    by: str
    at: int


class SessionPage(msgspec.Struct, frozen=True):
    """A page of the list; `next` is the cursor of the following one."""

    sessions: list[Session]
    next: str | None


class SessionDetail(msgspec.Struct, frozen=True):
    """One session with its turns and its queue."""

    session: Session
    turns: list[Turn]
    queue: list[Queued]


class EventPage(msgspec.Struct, frozen=True):
    """Records after a cursor; ask again with the new one while there are more."""

    events: list[Record]
    cursor: int
    more: bool


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence and the event that it rests on."""

    text: str
    stream: str
    version: int
    at: int


class Why(msgspec.Struct, frozen=True):
    """The answer to `why`."""

    subject: str
    sentences: list[Statement]


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a text was found."""

    session: str
    title: str
    version: int
    at: int
    role: str
    snippet: str


class SearchPage(msgspec.Struct, frozen=True):
    """What a search found, newest first."""

    hits: list[SearchHit]


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for a person."""

    id: str
    session: str
    title: str
    turn: int
    version: int
    purpose: str
    reason: str
    call: str
    choices: list[str]
    pattern: str
    until: int | None
    opened_at: int


class Inbox(msgspec.Struct, frozen=True):
    """Everything that waits for a person."""

    waits: list[Waiting]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that a session can have."""

    name: str
    model: str
    cwd: str
    instructions: str
    tools: dict[str, str]
    mcp: list[str]
    max_steps: int
    max_tokens: int
    max_minutes: int
    origin: str
    default: bool


class ProfileList(msgspec.Struct, frozen=True):
    """All profiles, and what is wrong with the settings if something is."""

    profiles: list[Profile]
    problem: str


class DetectedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that can be used as it is."""

    provider: str
    how: str
    models: list[str]


class ModelList(msgspec.Struct, frozen=True):
    """What was detected on this machine."""

    detected: list[DetectedModel]


class ContextMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message as the model sees it."""

    role: str
    turn: int
    text: str
    characters: int


class ModelContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the model sees, and about how large it is."""

    model: str
    instructions: str
    tools: list[str]
    messages: list[ContextMessage]
    characters: int
    tokens: int
    """Estimated as a quarter of the characters."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway about itself."""

    version: str
    pid: int
    home: str
    url: str
    started_at: int
    uptime_ms: int
    writable: bool
    problem: str
    sessions: int
    archived: int
    messages: int
    events: int
    working: list[str]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it is up, for process managers."""

    status: str
    version: str
    pid: int
    problem: str


class Goodbye(msgspec.Struct, frozen=True):
    """The gateway is about to end."""

    pid: int


SHAPES = (
    Accepted,
    SessionPage,
    SessionDetail,
    EventPage,
    Why,
    SearchPage,
    Inbox,
    ProfileList,
    ModelList,
    ModelContext,
    Status,
    Health,
    Goodbye,
    Error,
)
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
    507: "the disk takes no writes now",
}


async def told(request: Request, shape: type[C], *, subject: str) -> tuple[C, Caller]:
    """The command in the body, and who gave it under which id."""
    command = _decode(await _read(request), shape)
    given = request.headers.getlist("idempotency-key")
    if len(given) > 1 or (given and not COMMAND_ID.match(given[0])):
        raise Rejected("Idempotency-Key must be 8 to 64 letters, digits, - or _.")
    id = given[0] if given else f"{time.time_ns() // 1_000_000:011x}{secrets.token_hex(10)}"
    asked = f"{shape.__name__}\n{subject}\n".encode() + msgspec.json.encode(command)
    agent = request.headers.get("user-agent", "")
    by = "cli" if agent.startswith("holdfast-cli/") else "api"
    return command, Caller(CommandKey(id, hashlib.sha256(asked).hexdigest()), by)


async def _read(request: Request) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > BODY_LIMIT:
        raise _too_large()
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise _too_large()
    return bytes(body)


def _too_large() -> TooLarge:
    return TooLarge(
        f"The request is larger than {BODY_LIMIT // 1024 // 1024} MiB.",
        hint="Write long text into a file and name the file in the message.",
    )


def _decode(body: bytes, shape: type[C]) -> C:
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


def takes(shape: type[Command]) -> dict[str, Any]:
    """The keywords of a route that takes this command, and is answered when it is committed."""
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Minted by the client: a retry under the same id is stored once.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,64}$"},
    }
    required = any(field.required for field in msgspec.structs.fields(shape))
    body = {"required": required} | _json(shape)
    return returns(Accepted, status=202) | {"openapi_extra": {"requestBody": body, "parameters": [key]}}


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
