"""Everything that can have happened, as one closed tagged union; and how it is stored and sent.

An event is a fact in the past tense. Its JSON is written once and is the wire JSON: what is
stored is what a client replays. A field may be added with a default; a kind or a field is renamed
only together with a migration of what is stored (golden files in tests/golden guard this).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.domain.errors import Corrupt
from holdfast.domain.events.card import BoardEvent, CardEvent
from holdfast.domain.events.session import SessionEvent
from holdfast.domain.events.system import SystemEvent
from holdfast.domain.events.task import TaskEvent

AnyEvent = SessionEvent | TaskEvent | CardEvent | BoardEvent | SystemEvent
SYSTEM = "system"


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One line of the log as it is stored and sent: its position, its time and the event."""

    seq: int
    stream: str
    version: int
    at: int
    event: AnyEvent


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode
_decode_many = msgspec.json.Decoder(list[Record]).decode


def encode(event: AnyEvent) -> bytes:
    """Return the event's JSON as it is stored."""
    return _encode(event)


def decode(data: bytes) -> Record:
    """Decode one stored line. `Corrupt` if this version cannot read it."""
    try:
        return _decode(data)
    except msgspec.MsgspecError as error:
        raise unreadable_line(data, error) from error


def decode_many(lines: Sequence[bytes]) -> list[Record]:
    """Decode many stored lines at once, which costs less than one by one. `Corrupt` if one cannot be read."""
    try:
        return _decode_many(b"[" + b",".join(lines) + b"]")
    except msgspec.MsgspecError:
        return [decode(line) for line in lines]


def session_stream(session: str) -> str:
    """Return the name of a session's stream."""
    return "session/" + session


def task_stream(task: str) -> str:
    """Return the name of a task's stream."""
    return "task/" + task


def card_stream(card: str) -> str:
    """Return the name of a card's stream."""
    return "card/" + card


def board_stream(board: str) -> str:
    """Return the name of a board's stream."""
    return "board/" + board


def decode_readable(lines: Sequence[bytes]) -> tuple[list[Record], list[Corrupt]]:
    """Read all lines that can be read, and say which cannot."""
    try:
        return decode_many(lines), []
    except Corrupt:
        records: list[Record] = []
        unreadable: list[Corrupt] = []
        for line in lines:
            try:
                records.append(decode(line))
            except Corrupt as error:
                unreadable.append(error)
        return records, unreadable


# --- lines that cannot be read --------------------------------------------------------------------


class Location(msgspec.Struct, frozen=True, gc=False):
    """The place of a stored line."""

    seq: int
    stream: str
    version: int


_decode_location = msgspec.json.Decoder(Location).decode


def location(line: bytes) -> Location | None:
    """Return the location of a stored line; None if not even that can be read."""
    try:
        return _decode_location(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def unreadable_line(line: bytes, error: Exception) -> Corrupt:
    """Return the error for a line whose event this version cannot read."""
    where = location(line)
    name = f"A stored event ({line[:80]!r}…)" if where is None else f"Event {where.version} of {where.stream}"
    return Corrupt(
        f"{name} cannot be read by this version of Holdfast: {error}.",
        hint="A newer version may have written it: upgrade. `holdfast doctor` has details.",
    )
