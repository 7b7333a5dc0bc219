"""The transaction of a batch: it answers the questions of `decisions.Facts`, keeps the rows, collects what is written.

Everything happens in memory, between the trip that asks and the trip that writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from holdfast.domain.events import session_stream, task_stream
from holdfast.domain.events.card import CardCreated
from holdfast.store.contract import Append, Appended, Lease
from holdfast.store.decisions import (
    AppendDecision,
    HeldLease,
    NewEvent,
    StepRef,
    StoredCommand,
    check_lease,
    decide_append,
    decide_claim,
)
from holdfast.store.postgres.facts import NO_HEAD, KnownFacts, MissingFacts, Needs
from holdfast.store.postgres.projected_rows import row_statements, table_of
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.wire import BIGINT, BYTES, TEXT, Array, SqlStatement
from holdfast.store.projection import project
from holdfast.store.rows import AnswerRow, PartialText, R, Row, SessionRow, TaskRow, TurnRow, WaitRow
from holdfast.store.tables import DELETE_SESSION, DELETE_TASK, SPAN, Head, Key

EVENT_COLUMNS = (
    ("seqs", BIGINT),
    ("streams", TEXT),
    ("versions", BIGINT),
    ("ats", BIGINT),
    ("kinds", TEXT),
    ("data", BYTES),
    ("crcs", BIGINT),
    ("commands", TEXT),
    ("spans", BIGINT),
)
SPAN_COLUMNS = (("streams", TEXT), ("numbers", BIGINT), ("spans", BIGINT))
COMMAND_COLUMNS = (
    ("ids", TEXT),
    ("digests", TEXT),
    ("seqs", BIGINT),
    ("streams", TEXT),
    ("versions", BIGINT),
    ("ats", BIGINT),
    ("replies", TEXT),
)
STEP_COLUMNS = (("streams", TEXT), ("turns", BIGINT), ("steps", BIGINT))
Columns = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class SavedText:
    """The text so far of a stream as it was last saved, and in how many pieces."""

    partial: PartialText
    pieces: int


@dataclass(slots=True)
class BatchTransaction:
    """What is known, what is decided, and what is to be written."""

    known: KnownFacts
    saved: dict[str, SavedText]
    """The texts so far, by stream; changed here only when it is committed."""
    stored: list[NewEvent] = field(default_factory=list)
    new_saved: dict[str, SavedText | None] = field(default_factory=dict)
    has_news: bool = False
    """Whether other nodes must know of it although it has no events."""
    _last_seq: int = field(init=False)
    _last_token: int = field(init=False)
    _last_card_number: int | None = field(init=False)
    _heads: dict[str, Head] = field(default_factory=dict)
    _deleted: set[str] = field(default_factory=set)
    _leases: dict[str, HeldLease | None] = field(default_factory=dict)
    _commands: dict[str, StoredCommand] = field(default_factory=dict)
    _rows: dict[Key, Row | None] = field(default_factory=dict)
    """Rows as they are now, of those that this batch has changed or deleted."""
    _open_waits: dict[str, WaitRow | None] = field(default_factory=dict)
    _changed: dict[Key, tuple[Row | None, Row]] = field(default_factory=dict)
    """Rows that are to be written: as they are stored (None: new) and as they are now."""
    _gone: set[str] = field(default_factory=set)
    """Sessions that this batch deletes."""
    _new_events: list[tuple[object, ...]] = field(default_factory=list)
    _new_spans: list[tuple[object, ...]] = field(default_factory=list)
    _new_commands: list[tuple[object, ...]] = field(default_factory=list)
    _ended_steps: list[StepRef] = field(default_factory=list)
    _statements: list[SqlStatement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._last_seq, self._last_token = self.known.last_seq, self.known.last_token
        self._last_card_number = self.known.last_card_number

    # --- what is known --------------------------------------------------------------------------

    @property
    def life(self) -> int:
        """The life of this process."""
        return self.known.life

    @property
    def is_draining(self) -> bool:
        """Whether this node takes nothing new."""
        return self.known.is_draining

    @property
    def last_seq(self) -> int:
        """The seq of the last event."""
        return self._last_seq

    @property
    def last_token(self) -> int:
        """The last fencing token."""
        return self._last_token

    @property
    def last_card_number(self) -> int:
        """The highest number of a card, also of one that this batch creates."""
        if self._last_card_number is None:
            raise MissingFacts(Needs(card_number=True))
        return self._last_card_number

    def version(self, stream: str) -> int:
        """The version of the last event of a stream; 0 if it has none."""
        return self._head(stream).version

    def is_deleted(self, stream: str) -> bool:
        """Whether a stream was deleted on request."""
        self._head(stream)  # both are asked together
        return stream in self._deleted or stream in self.known.deleted

    def lease(self, stream: str) -> HeldLease | None:
        """Who holds the lease of a stream; None when it is free."""
        if stream in self._leases:
            return self._leases[stream]
        if stream not in self.known.leases:
            raise MissingFacts(Needs(leases={stream}))
        return self.known.leases[stream]

    def command(self, id: str) -> StoredCommand | None:
        """The command that was accepted under this id."""
        if id in self._commands:
            return self._commands[id]
        if id not in self.known.commands:
            raise MissingFacts(Needs(commands={id}))
        return self.known.commands[id]

    def _head(self, stream: str) -> Head:
        head = self._heads.get(stream) or self.known.heads.get(stream)
        if head is None:
            raise MissingFacts(Needs(streams={stream}))
        return head

    # --- what is written ------------------------------------------------------------------------

    def write(self, decision: AppendDecision, holder: str, at: int) -> None:
        """Store what an append comes to."""
        appended, key = decision.appended, decision.command
        if key is not None:
            place = (appended.stream, appended.version, appended.seq)
            self._commands[key.id] = StoredCommand(key.digest, *place, key.reply)
            row = (key.id, key.digest, appended.seq, appended.stream, appended.version, at, key.reply)
            self._new_commands.append(row)
        if appended.lease is not None:
            self.grant(appended.lease, holder)
        for new in decision.events:
            self._insert(new, None if key is None else key.id)
        for step in decision.ended_steps:
            self._ended_steps.append(step)
            self.new_saved[step.stream] = None
        self.stored += decision.events

    def grant(self, lease: Lease, holder: str) -> None:
        """Give a lease to a new holder."""
        self._last_token, self._leases[lease.stream] = lease.token, HeldLease(lease.token, self.life)
        row = {"stream": lease.stream, "token": lease.token, "holder": holder, "life": self.life}
        self._statements.append(statement("grant_lease", row))

    def free(self, stream: str) -> None:
        """Give back the lease of a stream, if this life has it."""
        held = self.lease(stream)
        if held is not None and held.life == self.life:
            self._leases[stream] = None
            self._statements.append(statement("free_lease", {"stream": stream, "life": self.life}))

    @property
    def granted(self) -> dict[str, int]:
        """The tokens of the leases that were given out."""
        return {stream: held.token for stream, held in self._leases.items() if held is not None}

    def save_text(self, stream: str, partial: PartialText) -> None:
        """Save the text so far: only what was added to it, if it is longer than before."""
        before = self.new_saved[stream] if stream in self.new_saved else self.saved.get(stream)
        place = {"stream": stream, "turn": partial.turn, "step": partial.step, "at": partial.at}
        if before is not None and _continues(before.partial, partial):
            number = before.pieces
            text = partial.text[len(before.partial.text) :]
            thinking = partial.thinking[len(before.partial.thinking) :]
        else:
            number, text, thinking = 0, partial.text, partial.thinking
            self._statements.append(statement("delete_partials", {"stream": stream}))
        piece = place | {"number": number, "text": text, "thinking": thinking}
        self._statements.append(statement("add_partial", piece))
        self.new_saved[stream] = SavedText(partial, number + 1)

    def skip_token(self) -> None:
        """Write something that means nothing, to find out whether the server takes writes."""
        self._last_token += 1

    def statements(self) -> list[SqlStatement]:
        """Return all that is to be written, in order."""
        self._flush()
        if self._last_token != self.known.last_token:
            self._statements.append(statement("set_last_token", {"token": self._last_token}))
        return self._statements

    def _insert(self, new: NewEvent, command: str | None) -> None:
        record = new.record
        stream, version, seq = record.stream, record.version, record.seq
        span = self._head(stream).span
        if (version - 1) % SPAN == 0:
            span = seq
            self._new_spans.append((stream, version // SPAN, span))
        kind = type(record.event).__name__
        self._new_events.append((seq, stream, version, record.at, kind, new.data, new.crc, command, span))
        self._last_seq, self._heads[stream] = seq, Head(version, span)
        project(record, self)
        if isinstance(record.event, CardCreated):
            self._last_card_number = max(self.last_card_number, record.event.number)

    def _flush(self) -> None:
        """Put what was collected behind the statements before it."""
        if self._new_events:
            self._statements.append(_columns("insert_events", EVENT_COLUMNS, self._new_events))
        if self._new_spans:
            self._statements.append(_columns("begin_spans", SPAN_COLUMNS, self._new_spans))
        if self._new_commands:
            self._statements.append(_columns("insert_commands", COMMAND_COLUMNS, self._new_commands))
        if self._ended_steps:
            self._statements.append(_columns("delete_partials_of_steps", STEP_COLUMNS, [*self._ended_steps]))
        self._statements += row_statements(self._changed.values())
        for collected in (self._new_events, self._new_spans, self._new_commands, self._ended_steps):
            collected.clear()
        self._changed.clear()

    # --- the rows of the projections ------------------------------------------------------------

    def get(self, row_type: type[R], *key: str | int) -> R | None:
        """The row with this key."""
        place: Key = (row_type, *key)
        for rows in (self._rows, self.known.rows):
            if place in rows:
                row = rows[place]
                gone = row is not None and rows is self.known.rows and _session_of(row) in self._gone
                return None if gone else cast(R | None, row)
        raise MissingFacts(Needs(rows={cast(type[Row], row_type): {key}}))

    def open_wait(self, session: str) -> WaitRow | None:
        """The open wait of a session."""
        if session in self._open_waits:
            return self._open_waits[session]
        if session not in self.known.open_waits:
            raise MissingFacts(Needs(open_waits={session}))
        return self.known.open_waits[session]

    def add(self, row: Row) -> None:
        """A new row; the database refuses it if there is one with its key."""
        key = table_of(type(row)).key_of(row)
        if key in self._changed:
            raise ValueError(f"{key} is new twice")
        self._keep(key, None, row)
        if isinstance(row, SessionRow):
            self._open_waits[row.id] = None

    def put(self, row: Row) -> None:
        """Replace the row that has the same key, which was read before."""
        key = table_of(type(row)).key_of(row)
        before = self._changed.get(key)
        stored = before[0] if before is not None else self._rows.get(key) or self.known.rows[key]
        self._keep(key, stored, row)

    def link(self, parent: str, child: str) -> None:
        """A card waits for another."""
        self._statements.append(statement("link_card", {"parent": parent, "child": child}))

    def unlink(self, parent: str, child: str) -> None:
        """It no longer waits for that card."""
        self._statements.append(statement("unlink_card", {"parent": parent, "child": child}))

    def delete_session(self, session: str, *, at: int) -> None:
        """Delete the rows and the events of a session, and remember that it existed."""
        self._gone.add(session)
        stream = session_stream(session)
        self._delete(DELETE_SESSION, stream, {"session": session, "stream": stream, "at": at})
        self._open_waits[session] = None
        self.new_saved[stream] = None
        for key, row in self._rows.items():
            if row is not None and _session_of(row) == session:
                self._rows[key] = None

    def delete_task(self, task: str, *, at: int) -> None:
        """The same of a task."""
        stream = task_stream(task)
        self._delete(DELETE_TASK, stream, {"task": task, "stream": stream, "at": at})
        self._rows[TaskRow, task] = None

    def _delete(self, steps: tuple[str, ...], stream: str, parameters: dict[str, object]) -> None:
        self._flush()
        self._statements += [statement(step, parameters) for step in steps]
        self._heads[stream] = NO_HEAD
        self._leases[stream] = None
        self._deleted.add(stream)

    def _keep(self, key: Key, stored: Row | None, row: Row) -> None:
        self._changed[key] = stored, row
        if type(row) is not AnswerRow:  # nothing is decided by those
            self._rows[key] = row
        if type(row) is WaitRow:
            self._open_waits[row.session] = row if row.state == "open" else None


def _session_of(row: Row) -> str:
    """The session with which a row is deleted."""
    if isinstance(row, SessionRow):
        return row.id
    return row.session if isinstance(row, TurnRow | WaitRow | AnswerRow) else ""


def _continues(before: PartialText, now: PartialText) -> bool:
    if (before.turn, before.step) != (now.turn, now.step):
        return False
    return now.text.startswith(before.text) and now.thinking.startswith(before.thinking)


def _columns(query: str, columns: Columns, rows: list[tuple[object, ...]]) -> SqlStatement:
    values = zip(*rows, strict=True)
    arrays = {name: Array(kind, column) for (name, kind), column in zip(columns, values, strict=True)}
    return statement(query, cast(dict[str, object], arrays))


# --- operations -------------------------------------------------------------------------------------


def do_append(tx: BatchTransaction, append: Append, encoded: list[list[bytes]]) -> Appended:
    """Write events, their projections and the command that caused them."""
    decision = decide_append(tx, append, encoded)
    if not decision.appended.duplicate:
        tx.write(decision, append.claim, append.at)
    return decision.appended


def do_claim(tx: BatchTransaction, stream: str, holder: str) -> Lease:
    """Grant a lease with the next token."""
    lease = decide_claim(tx, stream)
    tx.grant(lease, holder)
    return lease


def do_save_text(tx: BatchTransaction, lease: Lease, partial: PartialText) -> None:
    """Save the text so far; fenced like any other work."""
    check_lease(tx, lease)
    tx.save_text(lease.stream, partial)
