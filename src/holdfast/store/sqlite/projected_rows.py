"""The rows of the projections in SQLite: read when an event is about them, remembered, written once a transaction.

One process writes, so a row that was read or written stays true until its next change. All of them are forgotten when a
transaction fails and when something was deleted. The statements are made of the fields of the rows: a row is read by
its key and inserted whole; of one that changed only the changed columns are written, since an index on a column costs
as much as the row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import NamedTuple, cast

from msgspec.structs import astuple

from holdfast.domain.events import session_stream, task_stream
from holdfast.store.rows import AnswerRow, R, Row, SessionRow, WaitRow
from holdfast.store.sqlite.queries import statements
from holdfast.store.tables import (
    DELETE_SESSION,
    DELETE_TASK,
    TABLES,
    Key,
    decode_rows,
    differences,
    field_encoders,
)

REMEMBERED_ROWS = 5_000


@dataclass(slots=True)
class RememberedRows:
    """Rows that need not be read again, and which wait of a session is open (empty: none)."""

    rows: dict[Key, Row] = field(default_factory=dict)
    open_waits: dict[str, str] = field(default_factory=dict)
    most: int = REMEMBERED_ROWS

    def forget(self) -> None:
        """Read them again."""
        self.rows.clear()
        self.open_waits.clear()


class SqliteRows:
    """The rows as one transaction sees them."""

    def __init__(self, connection: sqlite3.Connection, remembered: RememberedRows) -> None:
        self._connection = connection
        self._remembered = remembered
        self._changed: dict[Key, tuple[Row | None, Row]] = {}
        """What is to be written: the row as it is stored (None: it is new) and as it is now."""

    def get(self, row_type: type[R], *key: str | int) -> R | None:
        known = self._remembered.rows.get((row_type, *key))
        if known is not None:
            return cast(R, known)
        return self._load(row_type, _table(row_type).load, key)

    def open_wait(self, session: str) -> WaitRow | None:
        known = self._remembered.open_waits.get(session)
        if known is not None:
            return self.get(WaitRow, known) if known else None
        statement, _ = statements()["open_wait"]
        wait = self._load(WaitRow, statement, (session,))
        self._remembered.open_waits[session] = "" if wait is None else wait.id
        return wait

    def add(self, row: Row) -> None:
        """A new row; the database refuses it if there is one with its key."""
        key = _table(type(row)).key_of(row)
        if key in self._changed:
            raise ValueError(f"{key} is new twice")
        self._keep(key, None, row)
        if isinstance(row, SessionRow):
            self._remembered.open_waits[row.id] = ""

    def put(self, row: Row) -> None:
        key = _table(type(row)).key_of(row)
        before = self._changed.get(key)
        self._keep(key, self._remembered.rows[key] if before is None else before[0], row)

    def link(self, parent: str, child: str) -> None:
        self._run("link_card", {"parent": parent, "child": child})

    def unlink(self, parent: str, child: str) -> None:
        self._run("unlink_card", {"parent": parent, "child": child})

    def delete_session(self, session: str, *, at: int) -> None:
        self._delete(DELETE_SESSION, {"session": session, "stream": session_stream(session), "at": at})

    def delete_task(self, task: str, *, at: int) -> None:
        self._delete(DELETE_TASK, {"task": task, "stream": task_stream(task), "at": at})

    def flush(self) -> None:
        """Write what changed, in the order in which it was first changed."""
        for stored, row in self._changed.values():
            table, values = _table(type(row)), astuple(row)
            if stored is None:
                self._connection.execute(table.insert, table.encode(values, table.places))
            elif changed := differences(astuple(stored), values):
                written = table.encode(values, changed) + table.key_of(row)[1:]
                self._connection.execute(_update(type(row), changed), written)
        self._changed.clear()
        if len(self._remembered.rows) > self._remembered.most:
            self._remembered.forget()

    def _keep(self, key: Key, stored: Row | None, row: Row) -> None:
        self._changed[key] = stored, row
        if type(row) is not AnswerRow:  # nothing is decided by those
            self._remembered.rows[key] = row
        if type(row) is WaitRow:
            self._remembered.open_waits[row.session] = row.id if row.state == "open" else ""

    def _load(self, row_type: type[R], statement: str, key: tuple[str | int, ...]) -> R | None:
        cursor = self._connection.execute(statement, key)
        found = decode_rows(row_type, [column[0] for column in cursor.description], cursor)
        if not found:
            return None
        row = cast(Row, found[0])
        self._remembered.rows[_table(type(row)).key_of(row)] = row
        return found[0]

    def _delete(self, steps: tuple[str, ...], parameters: dict[str, object]) -> None:
        self.flush()
        self._remembered.forget()
        for step in steps:
            self._run(step, parameters)

    def _run(self, query: str, parameters: dict[str, object]) -> None:
        statement, places = statements()[query]
        self._connection.execute(statement, places(parameters))


# --- the statements of a table ------------------------------------------------------------------

Places = tuple[int, ...]
"""The numbers of some fields of a row."""


class _Table(NamedTuple):
    key_of: Callable[[Row], Key]
    load: str
    insert: str
    places: Places
    """All of them."""
    encode: Callable[[tuple[object, ...], Places], tuple[object, ...]]
    """The values of these fields as they are stored."""


@cache
def _table(row_type: type[Row]) -> _Table:
    table, key = TABLES[row_type]
    fields: tuple[str, ...] = row_type.__struct_fields__
    encoders = field_encoders(row_type)

    def encode(values: tuple[object, ...], places: Places) -> tuple[object, ...]:
        return tuple([encoders[place](values[place]) if place in encoders else values[place] for place in places])

    values = attrgetter(*key)
    return _Table(
        key_of=(lambda row: (row_type, *values(row))) if len(key) > 1 else (lambda row: (row_type, values(row))),
        load=f"SELECT {', '.join(fields)} FROM {table} WHERE {_where(key)}",  # noqa: S608  # only names of ours
        insert=f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({', '.join('?' * len(fields))})",  # noqa: S608
        places=tuple(range(len(fields))),
        encode=encode,
    )


@cache
def _update(row_type: type[Row], places: Places) -> str:
    table, key = TABLES[row_type]
    fields = row_type.__struct_fields__
    changes = ", ".join(f"{fields[place]} = ?" for place in places)
    return f"UPDATE {table} SET {changes} WHERE {_where(key)}"  # noqa: S608


def _where(key: tuple[str, ...]) -> str:
    return " AND ".join(f"{column} = ?" for column in key)
