"""The one writer: many appends, one transaction, one fsync.

Whatever waits when the last commit is through goes into the next one. A disk that syncs within
`QUICK` is written to from the loop itself, since handing over to a thread and back costs more than
the sync; for a slower one the writer's thread does it, and the loop goes on. An operation checks
everything before its first statement that changes anything, so that a refused one leaves its
neighbours in the same transaction untouched. When the disk refuses, nobody in the batch is told
"done", the connection is opened anew (a failed fsync may have dropped pages), and a probe finds out
when it works again.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from holdfast.domain.errors import Conflict, Fenced, HoldfastError, Unavailable
from holdfast.domain.events import AnyEvent, Record, encode, session_stream
from holdfast.domain.system import SessionDeleted
from holdfast.domain.task import TaskPruned, task_stream
from holdfast.store.port import Append, Appended, CommandKey, Health, Lease, PartialText
from holdfast.store.projections import project
from holdfast.store.queries import queries
from holdfast.store.tail import Tail

PROBE_SECONDS = 2.0
QUICK, SLOW = 0.0015, 0.005
"""Seconds of a sync: below the first the loop commits by itself; a longer one than the second counts as that."""
BATCH = 512
KNOWN_HEADS = 10_000
Connect = Callable[[], sqlite3.Connection]
T = TypeVar("T")


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
    heads: dict[str, int]
    """Where streams end, as far as is known: one connection writes, so it need not be asked twice."""
    records: list[Record] = field(default_factory=list)

    def run(self, query: str, parameters: dict[str, object] | None = None) -> sqlite3.Cursor:
        """Run a named query."""
        return self.connection.execute(queries()[query], parameters or {})

    def value(self, query: str, parameters: dict[str, object]) -> int:
        """The single number that a query answers."""
        return int(self.run(query, parameters).fetchone()[0])

    def head(self, stream: str) -> int:
        """The version of a stream; 0 if it has no events."""
        head = self.heads.get(stream)
        if head is None:
            head = self.heads[stream] = self.value("head", {"stream": stream})
        return head

    def insert(self, stream: str, version: int, at: int, event: AnyEvent, body: bytes, command: str | None) -> Record:
        """One event, and what it does to the projections."""
        seq = self.last_seq + 1
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
        }
        self.run("insert_event", row)
        self.last_seq, self.heads[stream] = seq, version
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
        command = append.command.id if append.command is not None else None
        records: list[Record] = []
        ends: list[int] = []
        for write, encoded, head in zip(append.writes, self.encoded, heads, strict=True):
            for index, (event, data) in enumerate(zip(write.events, encoded, strict=True)):
                at = write.times[index] if write.times else append.at
                records.append(tx.insert(write.stream, head + 1 + index, at, event, data, command))
            ends.append(tx.last_seq)
        tx.records += records
        stream, count = append.writes[0].stream, len(append.writes[0].events)
        return Appended(stream, heads[0] + count, ends[0], tuple(records))

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
        head = tx.head(write.stream)
        for earlier in self.append.writes[:index]:
            if earlier.stream == write.stream:
                raise ValueError(f"two writes to {write.stream} in one append")
        if write.expect is not None and head != write.expect:
            raise Conflict(f"{write.stream} stands at version {head}, not at {write.expect}.")
        if head == 0 and tx.run("deleted_at", {"stream": write.stream}).fetchone() is not None:
            raise Conflict(f"{write.stream} was deleted.")
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


def encode_writes(append: Append) -> list[list[bytes]]:
    """The JSON of every event, made by the caller so that the writer only writes."""
    return [[encode(event) for event in write.events] for write in append.writes]


@dataclass(slots=True)
class _Request(Generic[T]):
    operation: Operation[T]
    future: asyncio.Future[T]
    result: T | None = None
    error: Exception | None = None


class Writer:
    """Owns the only connection that writes: the loop has it, or while `_away` the thread."""

    def __init__(self, connect: Connect, tail: Tail, loop: asyncio.AbstractEventLoop) -> None:
        self._connect = connect
        self._tail = tail
        self._loop = loop
        self._waiting: list[_Request[object]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-writer")
        self._away = False
        self._closed = False
        self._idle = asyncio.Event()
        self._prober: asyncio.TimerHandle | None = None
        self.health = Health()
        self._heads: dict[str, int] = {}
        self.commits = 0
        self.commit_seconds = 0.0
        self._sync_seconds = SLOW
        self._connection = connect()
        self._last_seq = int(self._connection.execute(queries()["last_seq"]).fetchone()[0])

    async def do(self, operation: Operation[T]) -> T:
        """Run an operation in the next transaction; return when it is durable."""
        if self._closed:
            raise Unavailable("The gateway is shutting down.")
        future: asyncio.Future[T] = self._loop.create_future()
        if not self._waiting and not self._away:
            self._loop.call_soon(self._next)
        self._waiting.append(_Request(operation, future))  # type: ignore[arg-type]
        return await future

    async def close(self) -> None:
        """Finish what was taken, then stop."""
        self._closed = True
        while self._waiting or self._away:
            self._idle.clear()
            await self._idle.wait()
        self._thread.shutdown()
        await asyncio.to_thread(self._connection.close)

    # --- on the loop ----------------------------------------------------------------------------

    def _next(self) -> None:
        """Commit what waits: here, if the disk is quick."""
        batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
        if self._sync_seconds < QUICK and self.health.writable:
            self._tell(batch, self._commit(batch))
        else:
            self._hand(batch)

    def _hand(self, batch: list[_Request[object]]) -> None:
        self._away = True
        self._thread.submit(self._commit_away, batch)

    def _back(self, batch: list[_Request[object]], records: list[Record]) -> None:
        self._away = False
        self._tell(batch, records)

    def _tell(self, batch: list[_Request[object]], records: list[Record]) -> None:
        """The followers, then whoever waits; those may have more to write before the next commit."""
        if records:
            self._tail.committed(records)
        for request in batch:
            if request.future.done():
                continue
            if request.error is not None:
                request.future.set_exception(request.error)
            else:
                request.future.set_result(request.result)
        if self._waiting:
            self._loop.call_soon(self._next)
        elif not self.health.writable and self._prober is None:
            self._prober = self._loop.call_later(PROBE_SECONDS, self._probe)
        self._idle.set()

    def _probe(self) -> None:
        """Find out whether the disk takes writes again, unless somebody is finding out already."""
        self._prober = None
        if not self._waiting and not self._away and not self._closed:
            self._hand([_Request(DoProbe(), self._loop.create_future())])

    # --- on the writer's thread, or on the loop -------------------------------------------------

    def _commit_away(self, batch: list[_Request[object]]) -> None:
        records = self._commit(batch)
        self._loop.call_soon_threadsafe(self._back, batch, records)

    def _commit(self, batch: list[_Request[object]]) -> list[Record]:
        """Run a batch in one transaction; what it wrote."""
        started = time.perf_counter()
        tx = Transaction(self._connection, self._last_seq, self._heads)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for request in batch:
                try:
                    request.result = request.operation.run(tx)
                except HoldfastError as refused:
                    request.error = refused
            written = time.perf_counter()
            self._connection.execute("COMMIT")
        except Exception as error:
            return self._failed(batch, error)
        ended = time.perf_counter()
        self._last_seq = tx.last_seq
        if len(self._heads) > KNOWN_HEADS:
            self._heads.clear()
        self.commits += 1
        self.commit_seconds += ended - started
        self._sync_seconds += (min(ended - written, SLOW) - self._sync_seconds) / 4
        self.health = Health()
        return tx.records

    def _failed(self, batch: list[_Request[object]], error: Exception) -> list[Record]:
        """Nobody is told "done". A sick disk fails all; a sick operation fails alone."""
        self._heads.clear()
        for request in batch:
            request.result = None
        if isinstance(error, sqlite3.Error) and _disk_trouble(error):
            problem = f"The disk does not take writes: {error}."
            since = int(time.time() * 1000) if self.health.writable else self.health.since
            self.health = Health(writable=False, problem=problem, since=since)
            refused = Unavailable(problem, hint="Free some space; it recovers by itself.")
            for request in batch:
                request.error = refused
            self._reopen()
            return []
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if len(batch) == 1:
            batch[0].error = error
            return []
        for request in batch:
            request.error = None
        return [record for request in batch for record in self._commit([request])]

    def _reopen(self) -> None:
        try:
            self._connection.close()
            self._connection = self._connect()
            self._last_seq = int(self._connection.execute(queries()["last_seq"]).fetchone()[0])
        except sqlite3.Error:
            self._connection.close()  # stays unhealthy: the next batch or probe opens it again


def _disk_trouble(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    closed = isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error)
    return closed or code in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
    )
