"""Reading: what is found by its key at once, on the loop; everything else on a few threads beside it.

A thread costs three times what it takes to find a row by its key. Readers never wait for the writer (WAL).
Each thread has a connection of its own, and begins when it is first needed. The one that read last reads next: what it
needs is still in its caches. With a ThreadPoolExecutor a page takes 15 % longer and a short list twice as long, with
one queue for all threads the short list 50 %.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

from holdfast.domain.errors import Unavailable

READERS = 3
DOCTOR = "`holdfast doctor` examines the home."
T = TypeVar("T")
OpenReader = Callable[[], sqlite3.Connection]
Read = Callable[[sqlite3.Connection], object]
_Job = tuple[Read, "asyncio.Future[object]"]


class Readers:
    """On a running loop, which alone hands out the work."""

    def __init__(self, connect: OpenReader) -> None:
        self._connect = connect
        self._here = _Connection(connect)
        self._threads: list[_ReaderThread] = []
        self._idle: list[_ReaderThread] = []
        self._waiting: deque[_Job] = deque()
        self._closed = False

    def read_here(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """What a function finds that reads a few rows by their key, called at once."""
        if self._closed:
            raise Unavailable("The gateway is shutting down.")
        return self._here.read(read)

    async def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """What a function finds, called on a thread with its connection."""
        if self._closed:
            raise Unavailable("The gateway is shutting down.")
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        if not self._idle and len(self._threads) < READERS:
            self._threads.append(_ReaderThread(_Connection(self._connect), self._finished))
            self._idle.append(self._threads[-1])
        if self._idle:
            self._idle.pop().jobs.put((read, future))
        else:
            self._waiting.append((read, future))
        return await future  # type: ignore[return-value]

    async def close(self) -> None:
        """Finish what was taken, then stop."""
        self._closed = True
        while self._waiting:
            self._threads[0].jobs.put(self._waiting.popleft())
        self._here.close()
        for reader in self._threads:
            reader.jobs.put(None)
        for reader in self._threads:
            await asyncio.to_thread(reader.join)

    def _finished(
        self, reader: _ReaderThread, future: asyncio.Future[object], found: object, error: Exception | None
    ) -> None:
        if self._waiting:
            reader.jobs.put(self._waiting.popleft())
        else:
            self._idle.append(reader)
        if future.done():  # the caller was cancelled
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(found)


class _Connection:
    """Opened by its first read, and again after one that failed."""

    def __init__(self, connect: OpenReader) -> None:
        self._connect = connect
        self._db: sqlite3.Connection | None = None

    def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            self._db = self._db or self._connect()
            return read(self._db)
        except sqlite3.Error as error:
            self.close()
            raise Unavailable(f"The database cannot be read: {error}.", hint=DOCTOR) from error

    def close(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = None


class _ReaderThread(threading.Thread):
    def __init__(self, connection: _Connection, finished: Callable[..., None]) -> None:
        super().__init__(name="holdfast-reader", daemon=True)
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._connection = connection
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self.start()

    def run(self) -> None:
        while (job := self.jobs.get()) is not None:
            read, future = job
            found: object = None
            error: Exception | None = None
            try:
                found = self._connection.read(read)
            except Exception as raised:
                error = raised
            self._loop.call_soon_threadsafe(self._finished, self, future, found, error)
            del job, read, future, found, error  # an idle thread keeps nothing alive
        self._connection.close()
