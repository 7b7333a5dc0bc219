"""Clients of the three forms, each giving the records exactly as they came over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import msgspec
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage

from tests.e2e.gateway import NO_TLS, GatewayProcess, Json
from tests.eventually import PATIENCE

Form = Literal["sse", "ws"]
FORMS: list[Form] = ["sse", "ws"]
Kind = Literal["record", "delta", "heartbeat", "end"]
CUT = (OSError, httpx.TransportError, ConnectionClosed, InvalidHandshake, InvalidMessage, EOFError)
"""What a client may see when its connection is cut."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing that a client saw, as bytes."""

    kind: Kind
    data: bytes = b""

    @property
    def json(self) -> Json:
        found: Json = msgspec.json.decode(self.data)
        return found


class _Frame(msgspec.Struct, forbid_unknown_fields=True):
    events: list[msgspec.Raw] | None = None
    cursor: int = -1
    delta: msgspec.Raw = msgspec.Raw()
    heartbeat: bool = False
    error: msgspec.Raw = msgspec.Raw()


def page(gateway: GatewayProcess, path: str, *, after: int = 0, limit: int = 7) -> list[bytes]:
    """All records by asking for one small page after the other."""
    found: list[bytes] = []
    while True:
        answer = gateway.request("GET", path, params={"after": after, "limit": limit})
        assert answer.status_code == 200, answer.text
        body = msgspec.json.decode(answer.content, type=dict[str, msgspec.Raw])
        found += map(bytes, msgspec.json.decode(body["events"], type=list[msgspec.Raw]))
        after = msgspec.json.decode(body["cursor"])
        if not msgspec.json.decode(body["more"]):
            return found


def stream(
    form: Form, gateway: GatewayProcess, path: str, *, after: int = 0, via: int | None = None, last: str | None = None
) -> AsyncGenerator[Seen, None]:
    """One connection, from a cursor until it ends. `via` is the port of a proxy."""
    headers = {"authorization": f"Bearer {gateway.token}", "host": f"127.0.0.1:{gateway.port}"}
    if last is not None:
        headers["last-event-id"] = last
    if form == "sse":
        return _sse(f"http://127.0.0.1:{via or gateway.port}{path}?after={after}", headers)
    return _ws(f"ws://{headers.pop('host')}{path}?after={after}", headers, via or gateway.port)


async def _sse(url: str, headers: dict[str, str]) -> AsyncGenerator[Seen, None]:
    headers["accept"] = "text/event-stream"
    async with (
        httpx.AsyncClient(timeout=PATIENCE, verify=NO_TLS) as client,
        client.stream("GET", url, headers=headers) as answer,
    ):
        if answer.status_code != 200:
            await answer.aread()
            raise Refused(answer.status_code, answer.json()["error"])
        assert answer.headers["content-type"] == "text/event-stream"
        rest = b""
        async for piece in answer.aiter_bytes():
            *messages, rest = (rest + piece).split(b"\n\n")
            for message in messages:
                if (seen := _sse_message(message)) is not None:
                    yield seen


def _sse_message(message: bytes) -> Seen | None:
    if message == b": heartbeat":
        return Seen("heartbeat")
    if message.startswith(b":"):
        return None
    fields = dict(line.split(b": ", 1) for line in message.split(b"\n"))
    match fields.get(b"event"):
        case b"delta":
            assert b"id" not in fields, "a delta moves no cursor"
            return Seen("delta", fields[b"data"])
        case b"end":
            return Seen("end", fields[b"data"])
        case None:
            record = msgspec.json.decode(fields[b"data"])
            assert int(fields[b"id"]) in (record["version"], record["seq"])
            return Seen("record", fields[b"data"])
        case other:
            raise AssertionError(f"an event of the unknown type {other!r}")


async def _ws(url: str, headers: dict[str, str], port: int) -> AsyncGenerator[Seen, None]:
    async with connect(
        url, host="127.0.0.1", port=port, additional_headers=headers, max_size=None, compression=None, proxy=None
    ) as socket:
        async for message in socket:
            assert isinstance(message, str)
            frame = msgspec.json.decode(message, type=_Frame)
            if frame.events is not None:
                records = [Seen("record", bytes(raw)) for raw in frame.events]
                last = records[-1].json
                assert frame.cursor in (last["version"], last["seq"])
                for record in records:
                    yield record
            elif frame.delta:
                yield Seen("delta", bytes(frame.delta))
            elif frame.error:
                yield Seen("end", message.encode())
                return
            else:
                assert frame.heartbeat
                yield Seen("heartbeat")


class Refused(Exception):
    """An event stream that did not begin."""

    def __init__(self, status: int, error: Json) -> None:
        super().__init__(f"{status}: {error}")
        self.status = status
        self.error = error


async def collect(
    seen: AsyncGenerator[Seen, None], enough: Callable[[list[Seen]], bool], *, seconds: float = PATIENCE
) -> list[Seen]:
    """Read until it is enough, or until the stream ends."""
    found: list[Seen] = []
    async with asyncio.timeout(seconds), aclosing(seen):
        if enough(found):
            return found
        async for one in seen:
            found.append(one)
            if enough(found):
                break
    return found


def at_least(count: int) -> Callable[[list[Seen]], bool]:
    """Enough when that many things have come."""
    return lambda seen: len(seen) >= count


def never(_: list[Seen]) -> bool:
    """Read until the other side ends it."""
    return False


def records(seen: list[Seen]) -> list[bytes]:
    return [one.data for one in seen if one.kind == "record"]


def ends_with(kind: str, *, count: int = 1) -> Callable[[list[Seen]], bool]:
    """Enough when that many events of this kind have come."""

    def enough(seen: list[Seen]) -> bool:
        if not seen or not is_kind(seen[-1]):
            return False
        return sum(map(is_kind, seen)) >= count

    def is_kind(one: Seen) -> bool:
        return one.kind == "record" and b'"kind":"%b"' % kind.encode() in one.data

    return enough


@dataclass(slots=True)
class Follower:
    """A client that is cut, comes back with its cursor, and writes down what it saw."""

    form: Form
    gateway: GatewayProcess
    path: str
    after: int = 0
    via: int | None = None
    cursor_of: Literal["version", "seq"] = "version"
    log: list[bytes] = field(default_factory=list)
    spoken: list[Json] = field(default_factory=list)
    attached: int = 0
    asked: int = 0
    """How many model requests it has seen; each begins a text of its own."""
    cuts: int = 0

    async def follow(self, enough: Callable[[dict[str, Any]], bool], *, seconds: float = PATIENCE) -> None:
        """Until a record is enough, whatever happens to the connection."""
        async with asyncio.timeout(seconds):
            while not await self._connection(enough):
                self.cuts += 1
                await asyncio.sleep(0.01)

    async def _connection(self, enough: Callable[[dict[str, Any]], bool]) -> bool:
        try:
            self.attached += 1
            seen = stream(self.form, self.gateway, self.path, after=self.after, via=self.via)
            async with aclosing(seen):
                async for one in seen:
                    if one.kind == "delta":
                        self.spoken.append({"attached": self.attached, "asked": self.asked} | one.json)
                    elif one.kind == "record":
                        record = one.json
                        self.log.append(one.data)
                        self.after = record[self.cursor_of]
                        self.asked += record["event"]["kind"] == "ModelRequested"
                        if enough(record):
                            return True
        except (*CUT, FileNotFoundError, KeyError):
            pass  # KeyError: while it starts anew there is no address
        return False
