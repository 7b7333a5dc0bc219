"""Reading requests: strict bodies and queries, the caller of a command, and the row that a path names."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from pathlib import Path
from typing import TypeVar

import msgspec
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request

from holdfast.domain.card_number import parse_card_number
from holdfast.domain.command import TEXT_LIMIT, Command
from holdfast.domain.errors import NotFound, NotReady, Rejected, TooLarge, Unavailable
from holdfast.domain.events.actor import PersonActor
from holdfast.gateway.state import Gateway, device_of, gateway_of
from holdfast.sessions import Caller
from holdfast.store.contract import CommandKey
from holdfast.store.rows import CardRow, SessionRow, TaskRow, TitledWait

BODY_LIMIT = 8 * 1024 * 1024
COMMAND_ID = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")
ID = re.compile(r"[0-9a-f]{4,32}\Z")
SHORT_ID = re.compile(r"[0-9a-f]{1,3}\Z")
C = TypeVar("C", bound=Command)
S = TypeVar("S", bound=msgspec.Struct)


class QueryShape(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the query parameters of a route."""


Q = TypeVar("Q", bound=QueryShape)


def parse_query(request: Request, shape: type[Q]) -> Q:
    """Return the query parameters. The last value of a repeated name counts; unknown names are ignored."""
    try:
        return msgspec.convert(dict(request.query_params), shape, strict=False)
    except msgspec.ValidationError as error:
        problem, _, name = str(error).partition(" - at `$.")
        raise Rejected(f"query.{name.rstrip('`')}: {problem}." if name else f"query: {problem}.") from error


async def parse_command(request: Request, shape: type[C], *, subject: str) -> tuple[C, Caller]:
    """Return the command in the body, and its caller with the command id."""
    command = await parse_body(request, shape)
    return command, caller_of(request, command, subject=subject)


async def parse_body(request: Request, shape: type[S], *, limit: int = BODY_LIMIT) -> S:
    """Return the body; unknown fields are refused."""
    return _decode(await _read(request, limit), shape)


def caller_of(request: Request, command: Command, *, subject: str) -> Caller:
    """Return the caller of a command, with the command id. NotReady while the gateway is starting."""
    gateway = gateway_of(request)
    if not gateway.recovered.is_set():
        if not gateway.store.health.writable:
            raise Unavailable(gateway.store.health.problem, hint="It continues by itself once the problem is solved.")
        raise NotReady("The gateway is starting: it is checking what its last run left open.", hint="Try again.")
    given = request.headers.getlist("idempotency-key")
    if len(given) > 1 or (given and not COMMAND_ID.match(given[0])):
        raise Rejected("Idempotency-Key must be 8 to 64 letters, digits, - or _.")
    id = given[0] if given else f"{time.time_ns() // 1_000_000:011x}{secrets.token_hex(10)}"
    asked = f"{type(command).__name__}\n{subject}\n".encode() + msgspec.json.encode(command)
    return Caller(CommandKey(id, hashlib.sha256(asked).hexdigest()), by_whom(request))


def by_whom(request: Request) -> PersonActor:
    """Return the calling person, with the client in use."""
    if device := device_of(request):
        return PersonActor(client="web", device=device)
    agent = request.headers.get("user-agent", "")
    return PersonActor(client="cli" if agent.startswith("holdfast-cli/") else "api")


def person_name(request: Request) -> str:
    """Return who calls, for people: the name of the device, or the command line of which node."""
    gateway, device = gateway_of(request), device_of(request)
    if device and gateway.devices.knows(device):
        return gateway.devices.get(device).name
    return f"{by_whom(request).client} on node {gateway.store.node}"


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
        f"The request is larger than {limit >> 20} MiB."
        if limit >> 20
        else f"The request is larger than {limit >> 10} KiB.",
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


# --- from the id in a path, or a unique prefix of it, to the row that it names ------------------------


class TaskConvertor(StringConvertor):
    """Matches the id of a task, but not the fixed paths beside it."""

    regex = r"(?!(?:agents|prune|search|stale)(?:/|$))[^/]+"


register_url_convertor("task", TaskConvertor())


async def session_of(request: Request) -> SessionRow:
    """Return the session that the path names."""
    return await find_session(gateway_of(request), request.path_params["id"])


async def task_of(request: Request) -> TaskRow:
    """Return the task that the path names."""
    prefix = _checked(request.path_params["id"], "task", hint="`holdfast tasks history` lists them.")
    return await gateway_of(request).store.task(prefix)


async def card_of(request: Request) -> CardRow:
    """Return the card that the path names."""
    name = request.path_params["id"]
    if parse_card_number(name) is None:
        _checked(name, "card", hint="`holdfast card list` lists them.")
    return await gateway_of(request).store.cards.card(name)


async def find_session(gateway: Gateway, prefix: str) -> SessionRow:
    """Return the session with this id or unique prefix."""
    return await gateway.store.session(_checked(prefix, "session", hint="`holdfast sessions` lists them."))


async def find_wait(gateway: Gateway, prefix: str) -> TitledWait:
    """Return the wait with this id or unique prefix."""
    return await gateway.store.wait(
        _checked(prefix, "question or an approval", hint="`holdfast inbox` lists what waits.")
    )


def _checked(prefix: str, noun: str, *, hint: str) -> str:
    if not ID.match(prefix):
        what = (
            "it is too short; use 4 or more characters"
            if SHORT_ID.match(prefix)
            else "a card has a number, such as HF-118"
            if noun == "card"
            else "an ID has the characters 0-9 and a-f"
        )
        raise NotFound(f"{prefix[:80]!r} is not the ID of a {noun}: {what}.", hint=hint)
    return prefix


async def working_directory(gateway: Gateway, given: str | None, *, here: bool = True) -> str:
    """Return the directory that a command names, by default the user's home. `here`: it must be one of this node."""
    cwd = Path(given) if given is not None else Path.home()
    if not (await gateway.cards.mounts.run(lambda: _is_directory(cwd)) if here else _may_be_directory(cwd)):
        raise Rejected(f"cwd {str(cwd)!r} is not the absolute path of a directory.")
    return str(cwd)


def _may_be_directory(path: Path) -> bool:
    return path.is_absolute() and "\0" not in str(path)


def _is_directory(path: Path) -> bool:
    try:
        return path.is_absolute() and path.is_dir()
    except OSError:  # the path is too long, or one of its directories may not be read
        return False


async def may_run_here(gateway: Gateway, profile: str, node: str) -> bool:
    """Return whether this node may work on a new session. Reject a node that nobody knows."""
    await gateway.nodes.check(node)
    return await gateway.nodes.fits_here(gateway.nodes.placement(profile, node))


def check_profile(gateway: Gateway, name: str) -> None:
    """Reject the name of a profile that does not exist."""
    known = gateway.profiles.names
    if name not in known:
        raise Rejected(f"There is no profile {name!r}.", hint=f"The profiles are: {', '.join(known)}.")
