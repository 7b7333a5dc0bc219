"""Following a session: a cursor into its log that survives the gateway.

What was seen is never yielded again and nothing is left out. When the connection is cut it waits for
the gateway, as long as its patience lasts, and goes on at its cursor.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.client.errors import ConnectionLost, UnexpectedResponse
from holdfast.client.http import HttpClient, Json, parsed
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
        """Its place in the session: the cursor to go on after it."""
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
    """A piece of an answer that is still being spoken: text and thinking, each with its place in the whole."""

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
    from holdfast.domain.events.lenient import lenient_record

    for item in items:
        if not isinstance(item, RecordReceived):
            yield item
        elif (record := lenient_record(item.record)) is not None:
            yield EventReceived(record)


def stored_records(client: HttpClient, session: str, *, after: int, page: int = PAGE) -> Iterator[RecordReceived]:
    """Everything after the cursor that is stored now, so many records a request."""
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
        raise ConnectionLost("What came is not an event stream of ours.") from error
