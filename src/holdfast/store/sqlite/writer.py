"""The one writer: many appends, one transaction, one fsync.

Whatever waits when the last commit is through goes into the next one. A disk that syncs within
`quick_sync` is written to from the loop itself, since handing over to a thread and back costs more than
the sync; for a slower one the writer's thread does it, and the loop continues. When the disk refuses,
no request of the batch succeeds, the connection is opened again (a failed fsync may have dropped
pages), and a probe finds out when it works again. While another program holds the write lock, nothing
waits inside of SQLite: the batch is tried again every few milliseconds, and refused after a few seconds.
What is written: `operations.py`.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from holdfast.domain.errors import HoldfastError, NotReady, Unavailable
from holdfast.store.contract import StoreHealth
from holdfast.store.decisions import NewEvent
from holdfast.store.sqlite.operations import Known, Operation, Transaction, do_probe
from holdfast.store.sqlite.queries import queries
from holdfast.store.subscriptions import Subscriptions
from holdfast.timings import USUAL, StoreTimings

LOCK_PAUSE_SECONDS = 0.02
SLOW = 0.005
"""Seconds of a sync; a longer one counts as that."""
LIGHT = 128
"""How many rows the loop itself writes, in some milliseconds; the thread writes more, on any disk."""
BATCH = 512
DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
OPERATION = (
    0,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
)
"""What is wrong with a statement or its values, so that trying again cannot help; anything else may pass."""
DOCTOR = "Run `holdfast doctor`."
KNOWN_HEADS = 10_000
OpenWriter = Callable[[], sqlite3.Connection]
T = TypeVar("T")
log = logging.getLogger(__name__)
NEAR = 16
"""This many events at the end of a stream are read on the loop, without a thread."""


@dataclass(slots=True)
class _Request(Generic[T]):
    operation: Operation[T]
    future: asyncio.Future[T]
    weight: int = 1
    """About how many rows it writes."""
    result: T | None = None
    error: Exception | None = None
    asked: float = field(default_factory=time.monotonic)
    again: bool = False
    """The database was locked: it goes into the next transaction."""


class Writer:
    """Owns the only connection that writes: the loop has it, or while `_in_thread` the thread."""

    def __init__(
        self,
        connect: OpenWriter,
        subscriptions: Subscriptions,
        loop: asyncio.AbstractEventLoop,
        timings: StoreTimings = USUAL.store,
    ) -> None:
        self._timings = timings
        self._connect = connect
        self._subscriptions = subscriptions
        self._loop = loop
        self._waiting: list[_Request[object]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-writer")
        self._in_thread = False
        self._closed = False
        self._idle = asyncio.Event()
        self._prober: asyncio.TimerHandle | None = None
        self.health = StoreHealth()
        self._known = Known()
        self.commits = 0
        self.commit_seconds = 0.0
        self._sync_seconds = SLOW
        self.life = 0
        """The life of this process as a node; 0 until its first commit, since the disk may be full at the start."""
        self._connection = connect()

    async def do(self, operation: Operation[T], *, weight: int = 1) -> T:
        """Run an operation in the next transaction; return when it is durable."""
        if self._closed:
            raise Unavailable("The gateway is shutting down.")
        future: asyncio.Future[T] = self._loop.create_future()
        if not self._waiting and not self._in_thread:
            self._loop.call_soon(self._next)
        self._waiting.append(_Request(operation, future, weight))  # type: ignore[arg-type]
        return await future

    def is_head(self, stream: str, version: int) -> bool:
        """Whether nothing is behind this version of a stream, as far as that is known without a query.

        While a transaction is open what is known is ahead of what is committed, never behind it.
        """
        head = self._known.heads.get(stream)
        return head is not None and 0 < head.version == version

    def is_near_head(self, stream: str, version: int) -> bool:
        """Whether only a few events can be behind this version of a stream."""
        head = self._known.heads.get(stream)
        return head is not None and head.version - version <= NEAR

    async def close(self) -> None:
        """Finish what was taken, then stop."""
        self._closed = True
        while self._waiting or self._in_thread:
            self._idle.clear()
            await self._idle.wait()
        self._thread.shutdown()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        """Put everything into the one file first: if a reader is the last to close, it cannot."""
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    # --- on the loop ----------------------------------------------------------------------------

    def _next(self) -> None:
        """Commit what waits: here, if the disk is quick."""
        batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
        if self._sync_seconds < self._timings.quick_sync and self.health.writable and _light(batch):
            self._deliver(batch, self._commit(batch))
        else:
            self._offload(batch)

    def _offload(self, batch: list[_Request[object]]) -> None:
        self._in_thread = True
        self._thread.submit(self._commit_in_thread, batch)

    def _back(self, batch: list[_Request[object]], stored: list[NewEvent]) -> None:
        self._in_thread = False
        self._deliver(batch, stored)

    def _deliver(self, batch: list[_Request[object]], stored: list[NewEvent]) -> None:
        """Notify the followers, then the callers, which may have more to write before the next commit."""
        if stored:
            self._subscriptions.committed(stored)
        locked = [request for request in batch if request.again]
        for request in batch:
            if request.future.done() or request.again:
                continue
            if request.error is not None:
                request.future.set_exception(request.error)
            else:
                request.future.set_result(request.result)
        self._waiting = locked + self._waiting
        if locked:
            self._loop.call_later(LOCK_PAUSE_SECONDS, self._next)
        elif self._waiting:
            self._loop.call_soon(self._next)
        elif not self.health.writable and self._prober is None:
            self._prober = self._loop.call_later(self._timings.probe, self._probe)
        self._idle.set()

    def _probe(self) -> None:
        """Find out whether the disk takes writes again, unless a batch is finding out already."""
        self._prober = None
        if not self._waiting and not self._in_thread and not self._closed:
            probe: asyncio.Future[object] = self._loop.create_future()
            probe.add_done_callback(asyncio.Future.exception)  # a failure is in `health`
            self._offload([_Request(do_probe, probe)])

    # --- on the writer's thread, or on the loop -------------------------------------------------

    def _commit_in_thread(self, batch: list[_Request[object]]) -> None:
        stored = self._commit(batch)
        self._loop.call_soon_threadsafe(self._back, batch, stored)

    def _commit(self, batch: list[_Request[object]]) -> list[NewEvent]:
        """Run a batch in one transaction; what it wrote. It never raises: every request gets its answer."""
        started = time.perf_counter()
        tx = Transaction(self._connection, self._known, self.life)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if not self.life:
                tx.begin_life(int(time.time() * 1000))
            for request in batch:
                request.again = False
                try:
                    request.result = request.operation(tx)
                except HoldfastError as refused:
                    request.error = refused
            tx.rows.flush()
            written = time.perf_counter()
            self._connection.execute("COMMIT")
        except Exception as error:
            try:
                return self._failed(batch, error)
            except Exception as worse:
                log.exception("a failed transaction could not be cleaned up")
                return self._refuse(batch, worse)
        ended = time.perf_counter()
        self.life = tx.life
        if len(self._known.heads) > KNOWN_HEADS:
            self._known.forget()
        self.commits += 1
        self.commit_seconds += ended - started
        self._sync_seconds += (min(ended - written, SLOW) - self._sync_seconds) / 4
        self.health = StoreHealth()
        return tx.stored

    def _failed(self, batch: list[_Request[object]], error: Exception) -> list[NewEvent]:
        """Report no success. A database error fails the whole batch; the error of an operation fails that one only."""
        self._known.forget()
        for request in batch:
            request.result, request.error, request.again = None, None, False
        trouble = self._trouble(error)
        if trouble is not None and _primary_code(trouble) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._locked(batch, trouble)
        if trouble is not None:
            return self._refuse(batch, trouble)
        if len(batch) == 1:
            batch[0].error = error
            return []
        return [record for request in batch for record in self._commit([request])]

    def _refuse(self, batch: list[_Request[object]], trouble: Exception) -> list[NewEvent]:
        """The database does not take writes now; begin again with a new connection."""
        full = isinstance(trouble, sqlite3.Error) and _primary_code(trouble) in DISK
        what, hint = ("disk", "Free some space; it recovers automatically.") if full else ("database", DOCTOR)
        problem = f"The {what} does not take writes: {trouble}."
        if _closed(trouble) and not self.health.writable:
            problem = self.health.problem  # why it could not be opened again
        self._note_problem(problem)
        refused = Unavailable(problem, hint=hint)
        for request in batch:
            request.result, request.error = None, refused
        self._reopen()
        return []

    def _locked(self, batch: list[_Request[object]], trouble: sqlite3.Error) -> list[NewEvent]:
        """Another program holds the write lock: requests that have not waited too long are tried again."""
        now = time.monotonic()
        problem = f"Another program keeps the database locked, so nothing can be written: {trouble}."
        if now - batch[0].asked >= self._timings.lock_notice:
            self._note_problem(problem)
        refused = NotReady(
            problem, hint="End the program that has holdfast.db open; writing then continues automatically."
        )
        for request in batch:
            request.again = now - request.asked < self._timings.lock
            request.error = None if request.again else refused
        return []

    def _note_problem(self, problem: str) -> None:
        since = int(time.time() * 1000) if self.health.writable else self.health.since
        self.health = StoreHealth(writable=False, problem=problem, since=since)

    def _trouble(self, error: Exception) -> sqlite3.Error | None:
        """What the database has to do with it; a transaction that cannot even be given up is no better."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as stuck:
            return stuck
        return error if isinstance(error, sqlite3.Error) and _database_trouble(error) else None

    def _reopen(self) -> None:
        try:
            self._connection.close()
            self._connection = self._connect()
            self._connection.execute(queries()["last_seq"])  # whether it can be read
        except Exception:
            with suppress(sqlite3.Error):
                self._connection.close()  # stays unhealthy: the next batch or probe opens it again


def _light(batch: list[_Request[object]]) -> bool:
    """Whether the batch is so small that the loop itself can write it."""
    return sum(request.weight for request in batch) <= LIGHT


def _primary_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _database_trouble(error: sqlite3.Error) -> bool:
    """Whether the database has a problem, and not just this operation."""
    return _closed(error) or _primary_code(error) not in OPERATION


def _closed(error: Exception) -> bool:
    return isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error)
