"""The one writer: many appends, one transaction, one fsync.

Whatever waits when the last commit is through goes into the next one. A disk that syncs within
`QUICK` is written to from the loop itself, since handing over to a thread and back costs more than
the sync; for a slower one the writer's thread does it, and the loop goes on. When the disk refuses,
nobody in the batch is told "done", the connection is opened anew (a failed fsync may have dropped
pages), and a probe finds out when it works again. What is written: `operations.py`.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from holdfast.domain.errors import HoldfastError, Unavailable
from holdfast.domain.events import Record
from holdfast.store.operations import DoProbe, Head, Operation, Transaction, weight
from holdfast.store.port import Health
from holdfast.store.queries import queries
from holdfast.store.tail import Tail

PROBE_SECONDS = 2.0
QUICK, SLOW = 0.0015, 0.005
"""Seconds of a sync: below the first the loop commits by itself; a longer one than the second counts as that."""
LIGHT = 128
"""So many rows the loop writes by itself, some milliseconds; more are for the thread on any disk."""
BATCH = 512
KNOWN_HEADS = 10_000
Connect = Callable[[], sqlite3.Connection]
T = TypeVar("T")


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
        self._heads: dict[str, Head] = {}
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

    def surely_ends(self, stream: str, version: int) -> bool:
        """Whether nothing is behind this version of a stream, as far as that is known without a look.

        While a transaction is open what is known is ahead of what is committed, never behind it.
        """
        head = self._heads.get(stream)
        return head is not None and 0 < head.version == version

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
        if self._sync_seconds < QUICK and self.health.writable and _light(batch):
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
            probe: asyncio.Future[object] = self._loop.create_future()
            probe.add_done_callback(asyncio.Future.exception)  # that it failed is in `health`; nobody else asks
            self._hand([_Request(DoProbe(), probe)])

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
        trouble = self._trouble(error)
        if trouble is not None:
            problem = f"The disk does not take writes: {trouble}."
            since = int(time.time() * 1000) if self.health.writable else self.health.since
            self.health = Health(writable=False, problem=problem, since=since)
            refused = Unavailable(problem, hint="Free some space; it recovers by itself.")
            for request in batch:
                request.error = refused
            self._reopen()
            return []
        if len(batch) == 1:
            batch[0].error = error
            return []
        for request in batch:
            request.error = None
        return [record for request in batch for record in self._commit([request])]

    def _trouble(self, error: Exception) -> sqlite3.Error | None:
        """What the disk has to do with it; a transaction that cannot even be given up is no better."""
        if isinstance(error, sqlite3.Error) and _disk_trouble(error):
            return error
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as stuck:
            return stuck
        return None

    def _reopen(self) -> None:
        try:
            self._connection.close()
            self._connection = self._connect()
            self._last_seq = int(self._connection.execute(queries()["last_seq"]).fetchone()[0])
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._connection.close()  # stays unhealthy: the next batch or probe opens it again


def _light(batch: list[_Request[object]]) -> bool:
    """Whether others hardly notice when the loop does it by itself."""
    return sum(weight(request.operation) for request in batch) <= LIGHT


def _disk_trouble(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    closed = isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error)
    return closed or code in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
    )
