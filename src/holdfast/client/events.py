"""Following a session, or the board: a cursor into the log that survives the gateway.

What was seen is never yielded again and nothing is left out. When the connection is cut it waits for
the gateway, as long as its patience lasts, and continues at its cursor.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.client.errors import ClientError, ConnectionLost, UnexpectedResponse
from holdfast.client.http import HttpClient, Json, parsed
from holdfast.client.lenient import lenient_record
from holdfast.client.reconnect import PATIENCE_SECONDS, UNREACHABLE, Disconnected, Reconnect, Reconnected

if TYPE_CHECKING:
    from holdfast.domain.events import AnyEvent, Record

PAGE = 1_000


class EventReceived(msgspec.Struct, frozen=True):
    """An event, with the record that says when and where."""

    record: Record

    @property
    def event(self) -> AnyEvent:
        """What happened."""
        return self.record.event

    @property
    def version(self) -> int:
        """Its version in the session: the cursor to continue after it."""
        return self.record.version


class RecordReceived(msgspec.Struct, frozen=True):
    """A record of the log as it was sent, for those who pass it on."""

    record: Json

    @property
    def event(self) -> Json:
        """What happened."""
        event = self.record["event"]
        assert isinstance(event, dict)
        return event


class TextDelta(msgspec.Struct, frozen=True):
    """A piece of an answer that is being streamed: text and thinking, each with its offset in the whole."""

    turn: int
    step: int
    offset: int
    text: str
    thinking_offset: int = 0
    thinking: str = ""


StreamItem = EventReceived | TextDelta | Disconnected | Reconnected
RecordItem = RecordReceived | TextDelta | Disconnected | Reconnected


def follow_events(items: Iterator[RecordItem]) -> Iterator[StreamItem]:
    """The items with typed events. Kinds that this version does not know are skipped; the cursor moves all the same."""
    for item in items:
        if not isinstance(item, RecordReceived):
            yield item
        elif (record := lenient_record(item.record)) is not None:
            yield EventReceived(record)


def stored_records(client: HttpClient, session: str, *, after: int, page: int = PAGE) -> Iterator[RecordReceived]:
    """Everything after the cursor that is stored now; `page` is the number of records per request."""
    more = True
    while more:
        found = client.get(f"/v1/sessions/{session}/events", after=after, limit=page)
        yield from map(RecordReceived, found["events"])
        after, more = found["cursor"], found["more"]


def follow_records(
    client: HttpClient,
    session: str,
    *,
    after: int,
    patience: float = PATIENCE_SECONDS,
    closed: threading.Event | None = None,
) -> Iterator[RecordItem]:
    """Everything after the cursor, then whatever comes, until somebody sets `closed`."""
    closed = closed or threading.Event()
    reconnect = Reconnect(patience=patience, sleep=closed.wait)
    while not closed.is_set():
        try:
            for item in _stream(client, session, after):
                if closed.is_set():
                    return
                if reconnect.succeeded():
                    yield Reconnected()
                if isinstance(item, RecordReceived):
                    after = int(item.record["version"])
                if item is not None:
                    yield item
        except UNREACHABLE as error:
            if reconnect.failed():
                yield Disconnected(patience)
            reconnect.wait(error, resume=f"holdfast sessions log {session} --follow --after {after}")


def _stream(client: HttpClient, session: str, after: int) -> Iterator[RecordReceived | TextDelta | None]:
    """One connection; `None` is a sign of life. It ends only by being cut."""
    with client.lines(f"/v1/sessions/{session}/events", after=after) as lines:
        kind, data = "", b""
        for line in lines:
            name, _, value = line.partition(b":")
            if name == b"event":
                kind = value.strip().decode("ascii", "replace")
            elif name == b"data":
                data = value
            elif line == b"" and data:
                item = _item(kind, data, after)
                if isinstance(item, RecordReceived):
                    after += 1
                yield item
                kind, data = "", b""
            else:
                yield None
    raise ConnectionLost("The gateway ended the stream.")


def _item(kind: str, data: bytes, after: int) -> RecordReceived | TextDelta | None:
    try:
        found = parsed(data)
        match kind:
            case "delta":
                thinking = (found.get("thinking_offset", 0), found.get("thinking", ""))
                return TextDelta(found["turn"], found["step"], found["offset"], found["text"], *thinking)
            case "end":
                raise ConnectionLost(str(found["error"]["message"]))
            case "" if found["version"] == after + 1:
                return RecordReceived(found)
            case "" if found["version"] > after + 1:
                raise ConnectionLost(f"Event {after + 1} is missing in the stream.")
            case _:
                return None
    except (ValueError, UnexpectedResponse, TypeError) as error:
        raise ConnectionLost("The answer is not an event stream of Holdfast.") from error


# --- the board ------------------------------------------------------------------------------------

BOARD_STREAMS = (b'"stream":"card/', b'"stream":"board/')
STREAM_WITHIN = 120
"""How far into a record it can be."""


class BoardWatcher:
    """A context manager; `wait` returns when a card or a board changed, when the time is over, or when it is back."""

    def __init__(self, client: HttpClient, *, patience: float) -> None:
        self._client = client
        self._patience = patience
        self._happened = threading.Event()
        self._closed = threading.Event()
        self._error: ClientError | None = None
        self._after = 0
        self.away = False
        """Whether the gateway cannot be reached."""

    def __enter__(self) -> BoardWatcher:
        self._after = int(self._client.get("/v1/status")["seq"])
        threading.Thread(target=self._follow, name="board", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def wait(self, seconds: float) -> bool:
        """Whether something happened. Raises what ended the following."""
        happened = self._happened.wait(seconds)
        self._happened.clear()
        if self._error is not None:
            raise self._error
        return happened

    def _follow(self) -> None:
        reconnect = Reconnect(patience=self._patience, sleep=self._closed.wait)
        try:
            while not self._closed.is_set():
                try:
                    for _ in self._read():
                        if reconnect.succeeded():
                            self.away = False
                            self._happened.set()
                except UNREACHABLE as error:
                    reconnect.failed()
                    self.away = True
                    self._happened.set()
                    reconnect.wait(error)
        except ClientError as error:
            self._error = error
            self._happened.set()

    def _read(self) -> Iterator[bytes]:
        """One connection, line by line until it is cut; the cursor moves on with it."""
        with self._client.lines("/v1/events", after=self._after) as lines:
            for line in lines:
                if self._closed.is_set():
                    return
                name, _, value = line.partition(b":")
                if name == b"id":
                    self._after = max(self._after, int(value))
                elif name == b"data" and any(stream in value[:STREAM_WITHIN] for stream in BOARD_STREAMS):
                    self._happened.set()
                yield line
        raise ConnectionLost("The gateway ended the stream.")
