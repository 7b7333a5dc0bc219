"""What is done inside a transaction of the one writer: append, claim, release, save a text so far.

An operation checks everything before its first statement that changes anything, so that a refused one leaves
its neighbours in the same transaction untouched.
"""

from __future__ import annotations

import sqlite3
import zlib
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from holdfast.domain.errors import Conflict, Fenced, VersionConflict
from holdfast.domain.events import AnyEvent, Record, encode, session_stream, task_stream
from holdfast.domain.events.system import SessionDeleted
from holdfast.domain.events.task import TaskPruned
from holdfast.store.contract import Append, Appended, CommandKey, Lease, PartialText
from holdfast.store.projections import project
from holdfast.store.queries import queries, statements

SPAN = 16
"""Versions of a stream in one span; the queries know it, too."""
T = TypeVar("T")


class Head(NamedTuple):
    """Where a stream ends, and the span that its last event stands in."""

    version: int
    span: int


class Operation(Protocol[T]):  # type: ignore[misc]
    """Something to do inside the next transaction."""

    def run(self, tx: Transaction) -> T:
        """Check, then write; raise a HoldfastError before the first write to refuse."""
        ...


@dataclass(slots=True)
class Transaction:
    """The open transaction of a batch."""

    connection: sqlite3.Connection
    last_seq: int
    heads: dict[str, Head]
    """Where streams end, as far as is known: one connection writes, so it need not be asked twice."""
    records: list[Record] = field(default_factory=list)

    def run(self, query: str, parameters: dict[str, object] | None = None) -> sqlite3.Cursor:
        """Run a named query."""
        statement, places = statements()[query]
        return self.connection.execute(statement, places(parameters or {}))

    def value(self, query: str, parameters: dict[str, object]) -> int:
        """The single number that a query answers."""
        return int(self.run(query, parameters).fetchone()[0])

    def head(self, stream: str) -> Head:
        """Where a stream ends; at 0 if it has no events."""
        head = self.heads.get(stream)
        if head is None:
            head = self.heads[stream] = head_of(self.connection, stream)
        return head

    def insert(self, stream: str, version: int, at: int, event: AnyEvent, body: bytes, command: str | None) -> Record:
        """One event, and what it does to the projections."""
        seq = self.last_seq + 1
        span = self._span(stream, version, seq)
        data = b'{"seq":%d,"stream":"%b","version":%d,"at":%d,"event":%b}' % (seq, stream.encode(), version, at, body)
        row = {
            "seq": seq,
            "stream": stream,
            "version": version,
            "at": at,
            "kind": type(event).__name__,
            "data": data,
            "crc": zlib.crc32(data),
            "command_id": command,
            "span": span,
        }
        self.run("insert_event", row)
        self.last_seq, self.heads[stream] = seq, Head(version, span)
        record = Record(seq=seq, stream=stream, version=version, at=at, event=event)
        for query, parameters in project(record):
            self.run(query, parameters)
        match event:
            case SessionDeleted(session=gone):
                self.heads.pop(session_stream(gone), None)
            case TaskPruned(task=gone):
                self.heads.pop(task_stream(gone), None)
            case _:
                ...
        return record

    def _span(self, stream: str, version: int, seq: int) -> int:
        """The span of an event; one that begins with it is written down."""
        number, place = divmod(version - 1, SPAN)
        if place:
            return self.head(stream).span
        self.run("begin_span", {"stream": stream, "number": number, "span": seq})
        return seq

    def check(self, lease: Lease) -> None:
        """Promise 2: only the holder of the lease writes what is done."""
        row = self.run("lease_token", {"stream": lease.stream}).fetchone()
        if row is None or row[0] != lease.token:
            raise Fenced(f"Another worker has {lease.stream}, or it was deleted.")


@dataclass(frozen=True, slots=True)
class DoAppend:
    """Events, their projections and the command that caused them."""

    append: Append
    encoded: list[list[bytes]]

    def run(self, tx: Transaction) -> Appended:
        """Check, then insert."""
        append = self.append
        if not append.writes:
            raise ValueError("an append without writes")
        try:
            if append.lease is not None:
                tx.check(append.lease)
            heads = [self._head(tx, index) for index in range(len(append.writes))]
        except Conflict:
            known = accepted(tx.connection, append.command) if append.command is not None else None
            if known is None:
                raise
            return known
        if append.command is not None and (known := self._remember(tx, append.command, heads[0])) is not None:
            return known
        stream, count = append.writes[0].stream, len(append.writes[0].events)
        lease = DoClaim(stream, append.claim).run(tx) if append.claim else None
        command = append.command.id if append.command is not None else None
        records: list[Record] = []
        ends: list[int] = []
        for write, encoded, head in zip(append.writes, self.encoded, heads, strict=True):
            for index, (event, data) in enumerate(zip(write.events, encoded, strict=True)):
                at = write.times[index] if write.times else append.at
                records.append(tx.insert(write.stream, head + 1 + index, at, event, data, command))
            ends.append(tx.last_seq)
        tx.records += records
        return Appended(stream, heads[0] + count, ends[0], tuple(records), lease=lease)

    def _remember(self, tx: Transaction, key: CommandKey, head: int) -> Appended | None:
        """Write the command down; what it came to before, if it is known."""
        write = self.append.writes[0]
        count = len(write.events)
        row = {
            "id": key.id,
            "digest": key.digest,
            "seq": tx.last_seq + count,
            "stream": write.stream,
            "version": head + count,
            "at": self.append.at,
        }
        if tx.run("insert_command", row).rowcount:
            return None
        return accepted(tx.connection, key)

    def _head(self, tx: Transaction, index: int) -> int:
        write = self.append.writes[index]
        head = tx.head(write.stream).version
        for earlier in self.append.writes[:index]:
            if earlier.stream == write.stream:
                raise ValueError(f"two writes to {write.stream} in one append")
        if write.expect is not None and head != write.expect:
            raise VersionConflict(f"{write.stream} stands at version {head}, not at {write.expect}.")
        if head == 0 and tx.run("deleted_at", {"stream": write.stream}).fetchone() is not None:
            raise VersionConflict(f"{write.stream} was deleted.")
        return head


@dataclass(frozen=True, slots=True)
class DoClaim:
    """Take a lease."""

    stream: str
    holder: str

    def run(self, tx: Transaction) -> Lease:
        """Raise the fence and grant."""
        token = tx.value("raise_fence", {})
        tx.run("grant_lease", {"stream": self.stream, "token": token, "holder": self.holder})
        return Lease(self.stream, token)


@dataclass(frozen=True, slots=True)
class DoRelease:
    """Give a lease back."""

    lease: Lease

    def run(self, tx: Transaction) -> None:
        """Delete it if it is still ours."""
        tx.run("release_lease", {"stream": self.lease.stream, "token": self.lease.token})


@dataclass(frozen=True, slots=True)
class DoPartial:
    """Overwrite the text so far."""

    lease: Lease
    partial: PartialText

    def run(self, tx: Transaction) -> None:
        """Fenced like any other work."""
        tx.check(self.lease)
        partial = self.partial
        row = {"turn": partial.turn, "step": partial.step, "text": partial.text, "thinking": partial.thinking}
        tx.run("save_partial", row | {"stream": self.lease.stream, "at": partial.at})


@dataclass(frozen=True, slots=True)
class DoProbe:
    """Write something that means nothing."""

    def run(self, tx: Transaction) -> object:
        """The fence may skip a number."""
        return tx.run("probe")


def head_of(connection: sqlite3.Connection, stream: str) -> Head:
    """Where a stream ends; at 0 if it has no events."""
    row = connection.execute(queries()["head"], {"stream": stream}).fetchone()
    return Head(0, 0) if row is None else Head(*row)


def accepted(connection: sqlite3.Connection, key: CommandKey) -> Appended | None:
    """What a command came to, if it was accepted before."""
    row = connection.execute(queries()["find_command"], {"id": key.id}).fetchone()
    if row is None:
        return None
    digest, seq, stream, version = row
    if digest != key.digest:
        raise Conflict(
            f"The command id {key.id} was used before for something else.",
            hint="Mint a new id for each new command.",
        )
    return Appended(stream, version, seq, duplicate=True)


def weight(operation: Operation[object]) -> int:
    """About how many rows it takes to do this; a guard stands for what is deleted with it, 4 kB for a row more."""
    if not isinstance(operation, DoAppend):
        return 1
    rows = sum(len(write.events) or write.expect or 0 for write in operation.append.writes)
    return rows + sum(len(data) >> 12 for encoded in operation.encoded for data in encoded)


def encode_writes(append: Append) -> list[list[bytes]]:
    """The JSON of every event, made by the caller so that the writer only writes."""
    return [[encode(event) for event in write.events] for write in append.writes]
