"""A connection that sends many prepared statements in one trip: libpq's pipeline mode, driven by the event loop.

psycopg's own asynchronous pipeline waits in Python for each statement and takes four times as long: here everything is
sent, then everything is read. One trip at a time; if its caller is cancelled, it is still read to its end.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.adapt import Buffer, Transformer
from psycopg.types.numeric import NumericBinaryLoader

BOOLEAN, BYTES, BIGINT, INTEGER, TEXT, DOUBLE = 16, 17, 20, 23, 25, 701
"""The numbers that PostgreSQL has for types."""
ARRAYS = {BOOLEAN: 1000, BYTES: 1001, INTEGER: 1007, BIGINT: 1016, TEXT: 1009, DOUBLE: 1022}
TYPE_NAMES = {
    BOOLEAN: "boolean",
    BYTES: "bytea",
    BIGINT: "bigint",
    INTEGER: "integer",
    TEXT: "text",
    DOUBLE: "double precision",
}
_PACKED = {BOOLEAN: "!ib", BIGINT: "!iq", INTEGER: "!ii", DOUBLE: "!id"}
_SIZES = {BOOLEAN: 1, BIGINT: 8, INTEGER: 4, DOUBLE: 8}
_NULL = b"\xff\xff\xff\xff"
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]\w*)")


class ConnectionEnded(Exception):  # it is caught, and never shown
    """The connection ended. What was sent in the last trip may have happened, and may not."""


@dataclass(frozen=True, slots=True)
class Array:
    """A parameter: a column of values, for `unnest`."""

    type: int
    values: Sequence[Any]


class SqlStatement(NamedTuple):
    """SQL with `$1`, `$2`, …, and their values."""

    sql: str
    values: Sequence[object] = ()


BEGIN, COMMIT, ROLLBACK = SqlStatement("BEGIN"), SqlStatement("COMMIT"), SqlStatement("ROLLBACK")


class ResultRows(NamedTuple):
    """The rows of a statement, and the names of their columns."""

    rows: list[tuple[Any, ...]]
    columns: tuple[str, ...]


@cache
def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a query with `$1` for each `:name`, and the names in this order."""
    names: list[str] = []

    def place(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return _PARAMETER.sub(place, sql), tuple(names)


_PackedValue = tuple[bytes | None, int, int]


def _packed(value: object) -> _PackedValue:
    """Return a parameter as it is sent, its type and its format: text for what is short, else binary."""
    match value:
        case None:
            return None, 0, 0
        case bool():
            return b"t" if value else b"f", BOOLEAN, 0
        case int():
            return b"%d" % value, BIGINT, 0
        case float():
            return repr(value).encode(), DOUBLE, 0
        case str():
            return _text(value), TEXT, 0
        case bytes():
            return value, BYTES, 1
        case Array(type=kind, values=values):
            return _array(kind, values), ARRAYS[kind], 1
        case list():
            return _array(TEXT, value), ARRAYS[TEXT], 1
        case _:
            raise TypeError(f"no parameter can be a {type(value).__name__}")


def _text(value: str) -> bytes:
    """PostgreSQL has no NUL in a text."""
    return value.replace("\0", "\ufffd").encode() if "\0" in value else value.encode()


def _array(kind: int, values: Sequence[Any]) -> bytes:
    if not values:
        return struct.pack("!iiI", 0, 0, kind)
    parts = [struct.pack("!iiIii", 1, 1 if None in values else 0, kind, len(values), 1)]
    if kind in _PACKED:
        pack, size = struct.Struct(_PACKED[kind]).pack, _SIZES[kind]
        parts += [_NULL if value is None else pack(size, value) for value in values]
    else:
        for value in values:
            if value is None:
                parts.append(_NULL)
                continue
            data = value if kind == BYTES else _text(value)
            parts += (len(data).to_bytes(4, "big"), data)
    return b"".join(parts)


class _NumberLoader(NumericBinaryLoader):
    """Sums are `numeric`: whole numbers become int."""

    def load(self, data: Buffer) -> Any:
        number = super().load(data)
        return int(number) if number == number.to_integral_value() else float(number)


@dataclass(slots=True)
class _Prepared:
    name: bytes
    columns: tuple[str, ...] | None = None


@dataclass(slots=True)
class _Trip:
    future: asyncio.Future[list[ResultRows]]
    expected: list[_Prepared | None]
    """Of each result that comes: its statement; None for a PREPARE."""
    new: dict[tuple[str, tuple[int, ...]], _Prepared]
    results: list[pq.abc.PGresult]
    timer: asyncio.TimerHandle

    def prepared(self) -> dict[tuple[str, tuple[int, ...]], _Prepared]:
        """Return the new statements that the server has taken, also if it refused something after them."""
        answers = [result.status for kind, result in zip(self.expected, self.results, strict=False) if kind is None]
        taken = sum(status == pq.ExecStatus.COMMAND_OK for status in answers)
        return dict(islice(self.new.items(), taken))


class Wire:
    """One connection. Made of a psycopg connection, which nobody else uses from then on."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        connection.adapters.register_loader("numeric", _NumberLoader)
        self._connection = connection
        self._transformer = Transformer(connection)
        self._pg = connection.pgconn
        self._pg.nonblocking = 1
        self._pg.enter_pipeline_mode()
        self._loop = asyncio.get_running_loop()
        self._prepared: dict[tuple[str, tuple[int, ...]], _Prepared] = {}
        self._made = 0
        self._trip: _Trip | None = None
        self.lost = ""
        """Why the connection ended; empty while it is there."""
        self.notified: Callable[[], None] | None = None
        """Called for a NOTIFY of another connection."""
        self._socket = self._pg.socket
        self._loop.add_reader(self._socket, self._readable)

    def run(self, statements: Sequence[SqlStatement], *, within: float) -> asyncio.Future[list[ResultRows]]:
        """Send statements and return a future with their answers in order.

        It raises what the server says about the first one that it refuses; those after it were not run. ConnectionEnded
        also when the answers take longer than `within` seconds. A value that cannot be sent is raised here, at once.
        """
        if self._trip is not None:
            raise RuntimeError("a trip is under way")
        packed = [(statement.sql, [_packed(value) for value in statement.values]) for statement in statements]
        future: asyncio.Future[list[ResultRows]] = self._loop.create_future()
        timer = self._loop.call_later(within, self.close, f"no answer within {within:g} s")
        self._trip = trip = _Trip(future, [], {}, [], timer)
        if self.lost:
            self.close(self.lost)
            return future
        try:
            for sql, values in packed:
                self._send(sql, values, trip)
            self._pg.pipeline_sync()
            self._flush()
        except psycopg.Error as error:
            self.close(_reason(error))
        return future

    def close(self, why: str = "closed") -> None:
        """End the connection, and the trip that is under way."""
        if not self.lost:
            self.lost = why
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._pg.finish()
        trip, self._trip = self._trip, None
        if trip is not None:
            trip.timer.cancel()
            if not trip.future.done():
                trip.future.set_exception(ConnectionEnded(self.lost))

    def _send(self, sql: str, packed: list[_PackedValue], trip: _Trip) -> None:
        types = tuple(kind for _, kind, _ in packed)
        key = (sql, types)
        prepared = self._prepared.get(key) or trip.new.get(key)
        if prepared is None:
            self._made += 1
            prepared = trip.new[key] = _Prepared(b"s%d" % self._made)
            self._pg.send_prepare(prepared.name, sql.encode(), types)
            trip.expected.append(None)
        values, formats = [value for value, _, _ in packed], [form for _, _, form in packed]
        self._pg.send_query_prepared(prepared.name, values, formats, result_format=1)
        trip.expected.append(prepared)

    def _flush(self) -> None:
        if self._pg.flush():
            self._loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        try:
            if self._pg.flush() == 0:
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self.close(_reason(error))

    def _readable(self) -> None:
        try:
            self._pg.consume_input()
            while (notice := self._pg.notifies()) is not None:
                if self.notified is not None and notice.be_pid != self._pg.backend_pid:
                    self.notified()
            while self._trip is not None and not self._pg.is_busy():
                result = self._pg.get_result()
                if result is None:
                    continue
                if result.status == pq.ExecStatus.PIPELINE_SYNC:
                    self._arrived(self._trip)
                else:
                    self._trip.results.append(result)
        except psycopg.Error as error:
            self.close(_reason(error))

    def _arrived(self, trip: _Trip) -> None:
        """All results are there."""
        refused = next((result for result in trip.results if result.status == pq.ExecStatus.FATAL_ERROR), None)
        error = None if refused is None else psycopg.errors.error_from_result(refused, encoding="utf-8")
        if error is not None and error.diag.severity_nonlocalized in ("FATAL", "PANIC"):
            self.close(_reason(error))
            return
        trip.timer.cancel()
        self._trip = None
        self._prepared |= trip.prepared()
        if trip.future.done():
            return
        if error is not None:
            trip.future.set_exception(error)
            return
        try:
            answers = [
                self._answer(prepared, result)
                for prepared, result in zip(trip.expected, trip.results, strict=True)
                if prepared is not None
            ]
        except Exception as broken:
            trip.future.set_exception(broken)
        else:
            trip.future.set_result(answers)

    def _answer(self, prepared: _Prepared, result: pq.abc.PGresult) -> ResultRows:
        if prepared.columns is None:
            names = [result.fname(number) or b"" for number in range(result.nfields)]
            prepared.columns = tuple(name.decode() for name in names)
        if result.status != pq.ExecStatus.TUPLES_OK:
            return ResultRows([], prepared.columns)
        self._transformer.set_pgresult(result)
        return ResultRows(self._transformer.load_rows(0, result.ntuples, tuple), prepared.columns)


def _reason(error: psycopg.Error) -> str:
    """What the server or libpq says, on one line."""
    message = error.diag.message_primary or str(error)
    return " ".join(message.split()).rstrip(".")
