"""What is done inside a transaction of the one writer: append, claim, save a text so far.

What an operation means is decided in `decisions.py`; here SQLite answers its questions and writes the outcome.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import holdfast
from holdfast.domain.events import session_stream, task_stream
from holdfast.domain.events.card import CardCreated
from holdfast.domain.events.system import SessionDeleted
from holdfast.domain.events.task import TaskPruned
from holdfast.store.contract import LOCAL_NODE, Append, Appended, Lease
from holdfast.store.decisions import (
    AppendDecision,
    HeldLease,
    NewEvent,
    StoredCommand,
    check_lease,
    decide_append,
    decide_claim,
)
from holdfast.store.projection import project
from holdfast.store.rows import PartialText
from holdfast.store.sqlite.projected_rows import RememberedRows, SqliteRows
from holdfast.store.sqlite.queries import queries, statements
from holdfast.store.tables import KEPT_LIVES, REPLACED, SPAN, Head

T = TypeVar("T")


@dataclass(slots=True)
class Known:
    """What the one writer knows without asking the database. It is forgotten when a transaction fails."""

    heads: dict[str, Head] = field(default_factory=dict)
    leases: dict[str, HeldLease] = field(default_factory=dict)
    """Leases that are held; one that is not here may still be in the database."""
    last_seq: int | None = None
    last_token: int | None = None
    last_card_number: int | None = None
    rows: RememberedRows = field(default_factory=RememberedRows)

    def forget(self) -> None:
        """The database has to be asked again."""
        self.rows.forget()
        self.heads.clear()
        self.leases.clear()
        self.last_seq = self.last_token = self.last_card_number = None


@dataclass(slots=True)
class Transaction:
    """The open transaction of a batch; it answers the questions of `decisions.Facts`."""

    connection: sqlite3.Connection
    known: Known
    life: int = 0
    """The life of this process, once its first transaction has begun it."""
    stored: list[NewEvent] = field(default_factory=list)
    rows: SqliteRows = field(init=False)

    def __post_init__(self) -> None:
        self.rows = SqliteRows(self.connection, self.known.rows)

    def run(self, query: str, parameters: dict[str, object] | None = None) -> sqlite3.Cursor:
        """Run a named query."""
        statement, places = statements()[query]
        return self.connection.execute(statement, places(parameters or {}))

    # --- what is known --------------------------------------------------------------------------

    is_draining: ClassVar = False  # there is no other node

    @property
    def last_seq(self) -> int:
        """The seq of the last event."""
        if self.known.last_seq is None:
            self.known.last_seq = int(self.run("last_seq").fetchone()[0])
        return self.known.last_seq

    @property
    def last_token(self) -> int:
        """The last fencing token."""
        if self.known.last_token is None:
            self.known.last_token = int(self.run("last_token").fetchone()[0])
        return self.known.last_token

    @property
    def last_card_number(self) -> int:
        """The highest number of a card, also of one that this transaction creates."""
        if self.known.last_card_number is None:
            self.known.last_card_number = int(self.run("last_card_number").fetchone()[0])
        return self.known.last_card_number

    def version(self, stream: str) -> int:
        """The version of the last event of a stream; 0 if it has none."""
        return self._head(stream).version

    def is_deleted(self, stream: str) -> bool:
        """Whether a stream was deleted on request."""
        return self.run("deleted_at", {"stream": stream}).fetchone() is not None

    def lease(self, stream: str) -> HeldLease | None:
        """Who holds the lease of a stream; None when it is free."""
        held = self.known.leases.get(stream)
        if held is None and (row := self.run("find_lease", {"stream": stream}).fetchone()) is not None:
            held = self.known.leases[stream] = HeldLease(*row)
        return held

    def command(self, id: str) -> StoredCommand | None:
        """The command that was accepted under this id."""
        return stored_command(self.connection, id)

    def _head(self, stream: str) -> Head:
        head = self.known.heads.get(stream)
        if head is None:
            head = self.known.heads[stream] = head_of(self.connection, stream)
        return head

    # --- what is written ------------------------------------------------------------------------

    def write(self, decision: AppendDecision, holder: str, at: int) -> None:
        """Store what an append comes to."""
        appended, key = decision.appended, decision.command
        if key is not None:
            row = {"id": key.id, "digest": key.digest, "seq": appended.seq, "stream": appended.stream}
            self.run("insert_command", row | {"version": appended.version, "at": at, "reply": key.reply})
        if appended.lease is not None:
            self.grant(appended.lease, holder)
        for new in decision.events:
            self._insert(new, None if key is None else key.id)
        for step in decision.ended_steps:
            self.run("delete_partial_of_step", step._asdict())
        self.stored += decision.events

    def begin_life(self, at: int) -> None:
        """End the life of the process that had the store open before, since this one has it now, and begin our own."""
        self.run("end_lives", {"name": LOCAL_NODE, "at": at, "reason": REPLACED})
        self.run("delete_ended_lives", {"kept": KEPT_LIVES})
        begun = self.run("begin_life", {"name": LOCAL_NODE, "version": holdfast.__version__, "at": at})
        self.life = int(begun.fetchone()[0])

    def grant(self, lease: Lease, holder: str) -> None:
        """Give a lease to a new holder."""
        self.run("set_last_token", {"token": lease.token})
        row = {"stream": lease.stream, "token": lease.token, "holder": holder, "life": self.life}
        self.run("grant_lease", row)
        self.known.last_token, self.known.leases[lease.stream] = lease.token, HeldLease(lease.token, self.life)

    def _insert(self, new: NewEvent, command: str | None) -> None:
        record = new.record
        stream, version = record.stream, record.version
        span = self._span(stream, version, record.seq)
        row = {
            "seq": record.seq,
            "stream": stream,
            "version": version,
            "at": record.at,
            "kind": type(record.event).__name__,
            "data": new.data,
            "crc": new.crc,
            "command_id": command,
            "span": span,
        }
        self.run("insert_event", row)
        self.known.last_seq, self.known.heads[stream] = record.seq, Head(version, span)
        project(record, self.rows)
        match record.event:
            case CardCreated(number=number):
                self.known.last_card_number = max(self.last_card_number, number)
            case SessionDeleted(session=gone):
                self._forget_stream(session_stream(gone))
            case TaskPruned(task=gone):
                self._forget_stream(task_stream(gone))
            case _:
                ...

    def _forget_stream(self, stream: str) -> None:
        self.known.heads.pop(stream, None)
        self.known.leases.pop(stream, None)

    def _span(self, stream: str, version: int, seq: int) -> int:
        """The span of an event; one that begins with it is written down."""
        number, place = divmod(version - 1, SPAN)
        if place:
            return self._head(stream).span
        self.run("begin_span", {"stream": stream, "number": number, "span": seq})
        return seq


Operation = Callable[[Transaction], T]
"""Something to do inside the next transaction: it checks, then writes; to refuse, it raises a HoldfastError first."""


def do_append(tx: Transaction, append: Append, encoded: list[list[bytes]]) -> Appended:
    """Write events, their projections and the command that caused them."""
    decision = decide_append(tx, append, encoded)
    if not decision.appended.duplicate:
        tx.write(decision, append.claim, append.at)
    return decision.appended


def do_claim(tx: Transaction, stream: str, holder: str) -> Lease:
    """Grant a lease with the next token."""
    lease = decide_claim(tx, stream)
    tx.grant(lease, holder)
    return lease


def do_save_partial(tx: Transaction, lease: Lease, partial: PartialText) -> None:
    """Overwrite the text so far; fenced like any other work."""
    check_lease(tx, lease)
    row = {"turn": partial.turn, "step": partial.step, "text": partial.text, "thinking": partial.thinking}
    tx.run("save_partial", row | {"stream": lease.stream, "at": partial.at})


def do_probe(tx: Transaction) -> None:
    """Write something that means nothing: skip a token, since a row that stays as it is would not reach the disk."""
    tx.run("set_last_token", {"token": tx.last_token + 1})
    tx.known.last_token = None


def head_of(connection: sqlite3.Connection, stream: str) -> Head:
    """Where a stream ends; at 0 if it has no events."""
    row = connection.execute(queries()["head"], {"stream": stream}).fetchone()
    return Head(0, 0) if row is None else Head(*row)


def stored_command(connection: sqlite3.Connection, id: str) -> StoredCommand | None:
    """The command that was accepted under this id."""
    row = connection.execute(queries()["find_command"], {"id": id}).fetchone()
    return None if row is None else StoredCommand(*row)


def weight(append: Append, encoded: list[list[bytes]]) -> int:
    """About how many rows it writes; a guard counts for what is deleted with it, and 4 kB of data as one more row."""
    rows = sum(len(write.events) or write.expect or 0 for write in append.writes)
    return rows + sum(len(data) >> 12 for events in encoded for data in events)
