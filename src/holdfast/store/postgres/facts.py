"""What a batch of operations must know, asked in one trip under the lock that orders the log.

An operation says what it needs (`needs_of_append`). Where that turns out to be too little, `MissingFacts` is raised,
the rest is asked in one more trip, and the batch is decided anew: to forget something here costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.domain.card import Board
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.card import CardCreated, RunFinished, RunHeartbeat
from holdfast.domain.events.session import (
    ModelResponded,
    TurnFinished,
    TurnResumed,
    TurnSuspended,
    WaitAnswered,
    WaitOpened,
)
from holdfast.store.contract import Append
from holdfast.store.decisions import HeldLease, StoredCommand
from holdfast.store.postgres.projected_rows import rows_statement, table_of
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.wire import ResultRows, SqlStatement
from holdfast.store.rows import CardRow, Row, RunRow, SessionRow, TaskRow, TurnRow, WaitRow
from holdfast.store.tables import Head, Key, decode_rows

RowKeys = dict[type[Row], set[tuple[str | int, ...]]]
_STREAM_ROWS: dict[str, type[Row]] = {"session": SessionRow, "task": TaskRow, "board": Board, "card": CardRow}


NO_HEAD = Head(0, 0)


@dataclass(slots=True)
class Needs:
    """What operations ask for."""

    streams: set[str] = field(default_factory=set)
    leases: set[str] = field(default_factory=set)
    commands: set[str] = field(default_factory=set)
    card_number: bool = False
    rows: RowKeys = field(default_factory=dict)
    open_waits: set[str] = field(default_factory=set)

    def add(self, other: Needs) -> None:
        """Ask for all of this, too."""
        self.streams |= other.streams
        self.leases |= other.leases
        self.commands |= other.commands
        self.card_number |= other.card_number
        self.open_waits |= other.open_waits
        for row_type, keys in other.rows.items():
            self.rows.setdefault(row_type, set()).update(keys)


class MissingFacts(Exception):  # a question, no error
    """Something has to be asked that nobody expected."""

    def __init__(self, needs: Needs) -> None:
        super().__init__(needs)
        self.needs = needs


def needs_of_append(append: Append) -> Needs:
    """Return what has to be known to decide on an append and to project its events."""
    needs = Needs(streams={write.stream for write in append.writes})
    if append.command is not None:
        needs.commands.add(append.command.id)
    if append.lease is not None:
        needs.leases.add(append.lease.stream)
    if append.duty is not None:
        needs.leases.add(append.duty.stream)
    if append.claim and append.writes:
        needs.leases.add(append.writes[0].stream)
    for write in append.writes:
        kind, _, id = write.stream.partition("/")
        if (row_type := _STREAM_ROWS.get(kind)) is not None:
            needs.rows.setdefault(row_type, set()).add((id,))
        for event in write.events:
            _add_needs_of_event(needs, id, event)
    return needs


def _add_needs_of_event(needs: Needs, id: str, event: AnyEvent) -> None:
    match event:
        case ModelResponded() | WaitOpened() | TurnSuspended() | TurnResumed():
            needs.rows.setdefault(TurnRow, set()).add((id, event.turn))
        case TurnFinished():
            needs.rows.setdefault(TurnRow, set()).add((id, event.turn))
            needs.open_waits.add(id)
        case WaitAnswered():
            needs.rows.setdefault(TurnRow, set()).add((id, event.turn))
            needs.rows.setdefault(WaitRow, set()).add((event.wait,))
        case RunHeartbeat() | RunFinished():
            needs.rows.setdefault(RunRow, set()).add((id, event.run))
        case CardCreated():
            needs.card_number = True
        case _:
            ...


@dataclass(slots=True)
class KnownFacts:
    """The answers, as they are before the batch. They are true as long as the lock is held."""

    life: int
    last_seq: int = 0
    last_token: int = 0
    is_alive: bool = True
    """Whether our life has not ended."""
    has_peers: bool = False
    """Whether other nodes have the store open."""
    is_draining: bool = False
    """Whether this node takes nothing new."""
    last_card_number: int | None = None
    heads: dict[str, Head] = field(default_factory=dict)
    """Of every stream that was asked for."""
    deleted: set[str] = field(default_factory=set)
    leases: dict[str, HeldLease | None] = field(default_factory=dict)
    commands: dict[str, StoredCommand | None] = field(default_factory=dict)
    rows: dict[Key, Row | None] = field(default_factory=dict)
    open_waits: dict[str, WaitRow | None] = field(default_factory=dict)

    def state_statement(self) -> SqlStatement:
        """Return the question where the log is, and whether we may write to it."""
        return statement("log_state", {"life": self.life})

    def take_state(self, answer: ResultRows) -> None:
        """Take the answer to that."""
        ((self.last_seq, self.last_token, self.is_alive, self.has_peers, self.is_draining),) = answer.rows

    def statements(self, needs: Needs) -> list[SqlStatement]:
        """Return the questions; what was asked before is left out."""
        asked: list[SqlStatement] = []
        streams = sorted(needs.streams - self.heads.keys())
        leases = sorted(needs.leases - self.leases.keys())
        commands = sorted(needs.commands - self.commands.keys())
        waits = sorted(needs.open_waits - self.open_waits.keys())
        if streams:
            asked += [statement("heads_of", {"streams": streams}), statement("deleted_among", {"streams": streams})]
        if leases:
            asked.append(statement("leases_of", {"streams": leases}))
        if commands:
            asked.append(statement("commands_of", {"ids": commands}))
        if needs.card_number and self.last_card_number is None:
            asked.append(statement("last_card_number"))
        if waits:
            asked.append(statement("open_waits_of", {"sessions": waits}))
        return asked + [rows_statement(row_type, keys) for row_type, keys in self._new_keys(needs)]

    def take(self, needs: Needs, answers: Iterator[ResultRows]) -> None:
        """Take the answers to the questions about these needs, in their order."""
        streams = needs.streams - self.heads.keys()
        leases = needs.leases - self.leases.keys()
        commands = needs.commands - self.commands.keys()
        waits = needs.open_waits - self.open_waits.keys()
        rows = self._new_keys(needs)
        if streams:
            self.heads |= dict.fromkeys(streams, NO_HEAD)
            self.heads |= {stream: Head(version, span) for stream, version, span in next(answers).rows}
            self.deleted |= {stream for (stream,) in next(answers).rows}
        if leases:
            self.leases |= dict.fromkeys(leases)
            self.leases |= {stream: HeldLease(token, life) for stream, token, life in next(answers).rows}
        if commands:
            self.commands |= dict.fromkeys(commands)
            self.commands |= {id: StoredCommand(*stored) for id, *stored in next(answers).rows}
        if needs.card_number and self.last_card_number is None:
            ((self.last_card_number,),) = next(answers).rows
        if waits:
            self.open_waits |= dict.fromkeys(waits)
            for wait in _decoded(WaitRow, next(answers)):
                assert isinstance(wait, WaitRow)
                self.open_waits[wait.session] = wait
                self.rows[WaitRow, wait.id] = wait
        for row_type, keys in rows:
            self.rows |= {(row_type, *key): None for key in keys if (row_type, *key) not in self.rows}
            self.rows |= {table_of(row_type).key_of(row): row for row in _decoded(row_type, next(answers))}

    def _new_keys(self, needs: Needs) -> list[tuple[type[Row], list[tuple[str | int, ...]]]]:
        found = [
            (row_type, sorted(key for key in keys if (row_type, *key) not in self.rows))
            for row_type, keys in needs.rows.items()
        ]
        return [(row_type, keys) for row_type, keys in found if keys]


def _decoded(row_type: type[Row], answer: ResultRows) -> list[Row]:
    return list(decode_rows(row_type, answer.columns, answer.rows))
