"""Reading: what is found by its key at once, on the loop; everything else on a few threads beside it.

A thread costs three times what it takes to find a row by its key. Readers never wait for the writer (WAL).
Each thread has a connection of its own.
The one that read last reads next: what it needs is still in its caches, so that reading page after page
costs little more than reading on. A thread and its connection begin when they are first needed.
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
        self._loop = asyncio.get_running_loop()
        self._threads: list[_Reader] = []
        self._idle: list[_Reader] = []
        self._waiting: deque[_Job] = deque()
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        """For what is read on the loop."""

    def read_here(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """What a function finds that reads a few rows by their key, called at once."""
        if self._closed:
            raise Unavailable("The gateway is shutting down.")
        try:
            self._connection = self._connection or self._connect()
            return read(self._connection)
        except sqlite3.Error as error:
            _close(self._connection)
            self._connection = None  # the next read begins anew
            raise _unreadable(error) from error

    async def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """What a function finds, called on a thread with its connection."""
        if self._closed:
            raise Unavailable("The gateway is shutting down.")
        future: asyncio.Future[object] = self._loop.create_future()
        if not self._idle and len(self._threads) < READERS:
            self._threads.append(_Reader(self._connect, self._back))
            self._idle.append(self._threads[-1])
        if self._idle:
            self._idle.pop().jobs.put((read, future))
        else:
            self._waiting.append((read, future))
        return await future  # type: ignore[return-value]

    def _back(self, reader: _Reader, future: asyncio.Future[object], found: object, error: Exception | None) -> None:
        if self._waiting:
            reader.jobs.put(self._waiting.popleft())
        else:
            self._idle.append(reader)
        if future.done():  # nobody wants it any more
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(found)

    async def close(self) -> None:
        """Finish what was taken, then stop."""
        self._closed = True
        while self._waiting:
            self._threads[0].jobs.put(self._waiting.popleft())
        _close(self._connection)
        for reader in self._threads:
            reader.jobs.put(None)
        for reader in self._threads:
            await asyncio.to_thread(reader.thread.join)


class _Reader:
    def __init__(self, connect: OpenReader, back: Callable[..., None]) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._connect = connect
        self._back = back
        self._loop = asyncio.get_running_loop()
        self.thread = threading.Thread(target=self._work, name="holdfast-reader", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        connection: sqlite3.Connection | None = None
        while (job := self.jobs.get()) is not None:
            read, future = job
            found: object = None
            error: Exception | None = None
            try:
                connection = connection or self._connect()
                found = read(connection)
            except sqlite3.Error as raised:
                _close(connection)
                connection = None  # the next read begins anew
                error = _unreadable(raised)
                error.__cause__ = raised
            except Exception as raised:
                error = raised
            self._loop.call_soon_threadsafe(self._back, self, future, found, error)
            del job, read, future, found, error  # an idle thread keeps nothing alive
        _close(connection)


def _unreadable(error: sqlite3.Error) -> Unavailable:
    return Unavailable(f"The database cannot be read: {error}.", hint=DOCTOR)


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        with suppress(sqlite3.Error):
            connection.close()
