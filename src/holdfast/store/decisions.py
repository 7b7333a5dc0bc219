"""What an operation of the store means, given what is known: pure functions, no SQL and no clock.

An engine answers the questions of `Facts` and writes what was decided, in the same transaction. SQLite asks its one
connection when a question comes up and remembers the answers; an engine with several writers reads them all first.
Everything is checked before anything is decided, so a refused operation leaves its neighbours in a transaction alone.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from holdfast.domain.errors import Conflict, Fenced, HeldElsewhere, LostDuty, NotFound, VersionConflict
from holdfast.domain.events import AnyEvent, Record, encode
from holdfast.domain.events.card import CardCreated
from holdfast.domain.events.session import ModelFailed, ModelInterrupted, ModelResponded
from holdfast.store.contract import Append, Appended, CommandKey, Lease


class StoredCommand(NamedTuple):
    """A command that was accepted, and where its first write ended."""

    digest: str
    stream: str
    version: int
    seq: int
    reply: str


class HeldLease(NamedTuple):
    """A lease whose holder is still alive."""

    token: int
    life: int


class Facts(Protocol):
    """What is known inside of the open transaction."""

    @property
    def last_seq(self) -> int:
        """The seq of the last event; 0 in an empty log."""
        ...

    @property
    def last_token(self) -> int:
        """The last fencing token that was given out."""
        ...

    @property
    def last_card_number(self) -> int:
        """The highest number of a card; 0 before the first card. Nobody else gets the next one meanwhile: an engine
        with several writers reads it under the lock that orders the log.
        """
        ...

    def version(self, stream: str) -> int:
        """The version of the last event of a stream; 0 if it has none."""
        ...

    def is_deleted(self, stream: str) -> bool:
        """Whether a stream was deleted on request."""
        ...

    @property
    def life(self) -> int:
        """The life of the node that asks."""
        ...

    @property
    def is_draining(self) -> bool:
        """Whether the node that asks takes nothing new."""
        ...

    def lease(self, stream: str) -> HeldLease | None:
        """Who holds the lease of a stream; None when it is free, also since the life of its holder has ended."""
        ...

    def command(self, id: str) -> StoredCommand | None:
        """The command that was accepted under this id."""
        ...


class NewEvent(msgspec.Struct, frozen=True, gc=False):
    """An event to be stored: its record, its line as it goes over the wire, and the checksum of that."""

    record: Record
    data: bytes
    crc: int


class StepRef(NamedTuple):
    """A step of a turn."""

    stream: str
    turn: int
    step: int


@dataclass(frozen=True, slots=True)
class AppendDecision:
    """What an append writes: events in order, its command, the lease that it takes. After a retry nothing."""

    appended: Appended
    events: tuple[NewEvent, ...] = ()
    command: CommandKey | None = None
    ended_steps: tuple[StepRef, ...] = ()
    """The steps whose text so far is no longer needed."""


def encode_writes(append: Append) -> list[list[bytes]]:
    """The JSON of every event, made by the caller so that the writer only writes."""
    return [[encode(event) for event in write.events] for write in append.writes]


def decide_append(facts: Facts, append: Append, bodies: list[list[bytes]]) -> AppendDecision:
    """Check command id, lease and versions, then number events and new cards. `bodies` is the JSON of each event."""
    streams = [write.stream for write in append.writes]
    if not streams:
        raise ValueError("an append without writes")
    if len(set(streams)) < len(streams):
        raise ValueError(f"two writes to one stream in one append: {', '.join(streams)}")
    key = append.command
    if key is not None and (before := accepted(facts.command(key.id), key)) is not None:
        return AppendDecision(before)
    if append.lease is not None:
        check_lease(facts, append.lease)
    if append.duty is not None:
        check_duty(facts, append.duty)
    versions = [_checked_version(facts, write.stream, write.expect) for write in append.writes]
    lease = decide_claim(facts, streams[0]) if append.claim else None
    events: list[NewEvent] = []
    first_seq = seq = facts.last_seq
    numbers = _CardNumbers(facts)
    for write, written, version in zip(append.writes, bodies, versions, strict=True):
        for index, (event, body) in enumerate(zip(write.events, written, strict=True), 1):
            if isinstance(event, CardCreated):
                event = numbers.numbered(event)  # noqa: PLW2901
                body = encode(event)  # noqa: PLW2901
            at = write.times[index - 1] if write.times else append.at
            events.append(_new_event(seq + index, write.stream, version + index, at, event, body))
        seq += len(write.events)
        if write is append.writes[0]:
            first_seq = seq
    version = versions[0] + len(append.writes[0].events)
    records = tuple(new.record for new in events)
    reply = "{}" if key is None else key.reply
    appended = Appended(streams[0], version, first_seq, records, lease=lease, reply=reply)
    return AppendDecision(appended, tuple(events), key, _ended_steps(records))


class _CardNumbers:
    """Gives the cards of an append their numbers. Several in one append get one after the other."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._last: int | None = None

    def numbered(self, created: CardCreated) -> CardCreated:
        """Return the event with its number. One that is copied with its number keeps it."""
        last = self._facts.last_card_number if self._last is None else self._last
        if not created.number:
            created = msgspec.structs.replace(created, number=last + 1)
        self._last = max(last, created.number)
        return created


def _checked_version(facts: Facts, stream: str, expect: int | None) -> int:
    version = facts.version(stream)
    if expect is not None and version != expect:
        raise VersionConflict(f"{stream} is at version {version}, not at {expect}.")
    if version == 0 and facts.is_deleted(stream):
        raise VersionConflict(f"{stream} was deleted.")
    return version


def _new_event(seq: int, stream: str, version: int, at: int, event: AnyEvent, body: bytes) -> NewEvent:
    data = b'{"seq":%d,"stream":"%b","version":%d,"at":%d,"event":%b}' % (seq, stream.encode(), version, at, body)
    record = Record(seq=seq, stream=stream, version=version, at=at, event=event)
    return NewEvent(record, data, zlib.crc32(data))


def _ended_steps(records: tuple[Record, ...]) -> tuple[StepRef, ...]:
    ends = ModelResponded | ModelInterrupted | ModelFailed
    return tuple(
        StepRef(record.stream, record.event.turn, record.event.step)
        for record in records
        if isinstance(record.event, ends)
    )


def accepted(stored: StoredCommand | None, key: CommandKey) -> Appended | None:
    """Return the result of a command that was accepted before. Conflict if its id was used for another command."""
    if stored is None:
        return None
    if stored.digest != key.digest:
        raise Conflict(
            f"The command id {key.id} was used before for another command.",
            hint="Use a new id for each new command.",
        )
    return Appended(stored.stream, stored.version, stored.seq, duplicate=True, reply=stored.reply)


def decide_claim(facts: Facts, stream: str) -> Lease:
    """The next token, greater than all before, so that an earlier worker of this node is fenced by it.

    HeldElsewhere while another node works on the stream: its lease is free only when its life has ended.
    """
    held = facts.lease(stream)
    if held is not None and held.life != facts.life:
        raise HeldElsewhere(f"Another node works on {stream}.", hint="It is taken over when that node stops.")
    if held is None and facts.is_draining:
        raise HeldElsewhere(f"This node is being drained, so it leaves {stream} to others.")
    return Lease(stream, facts.last_token + 1)


def check_lease(facts: Facts, lease: Lease) -> None:
    """Refuse the writes of a worker whose lease has passed to another one."""
    held = facts.lease(lease.stream)
    if held is None or held != (lease.token, facts.life):
        raise Fenced(f"Another worker has {lease.stream}, or it was deleted.")


def check_duty(facts: Facts, lease: Lease) -> None:
    """Refuse what is written as part of a duty that has passed to another node."""
    if facts.lease(lease.stream) != (lease.token, facts.life):
        raise LostDuty(f"Another node may have {lease.stream} by now, so this one has written nothing.")


def check_seen(facts: Facts, stream: str, version: int) -> None:
    """Refuse a read position behind the end of a session."""
    head = facts.version(stream)
    if head == 0:
        raise NotFound(f"There is no session {stream.partition('/')[2]}.")
    if version > head:
        raise Conflict(f"The session ends at version {head}; {version} cannot have been seen.")
