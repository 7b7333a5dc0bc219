"""Reading: a few connections beside that of the writer, opened when they are first needed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

import psycopg

from holdfast.domain.errors import HoldfastError, Unavailable
from holdfast.store.postgres.connections import Database, connect, explain
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.wire import ConnectionEnded, ResultRows, SqlStatement, Wire
from holdfast.timings import StoreTimings

READERS = 4
CLOSED = "The gateway is shutting down."


class ReadConnections:
    """On a running loop. A read whose connection was lost is tried once more, on a new one."""

    def __init__(self, database: Database, timings: StoreTimings, stopped: Callable[[], HoldfastError | None]) -> None:
        self._database = database
        self._timings = timings
        self._stopped = stopped
        self._idle: list[Wire] = []
        self._open: set[Wire] = set()
        self._connecting = 0
        self._waiting: deque[asyncio.Future[Wire | None]] = deque()
        self._closed = False

    async def query(self, name: str, **parameters: object) -> ResultRows:
        """What a named query finds."""
        (answer,) = await self.run([statement(name, parameters)])
        return answer

    async def run(self, statements: Sequence[SqlStatement]) -> list[ResultRows]:
        """What statements find, in one trip."""
        try:
            try:
                return await self._run(statements)
            except (ConnectionEnded, psycopg.errors.FeatureNotSupported):  # the latter: a newer version changed a table
                return await self._run(statements)
        except ConnectionEnded as error:
            raise Unavailable(
                f"{self._database} cannot be read: {error}.", hint="It is tried again automatically."
            ) from error
        except psycopg.Error as error:
            raise explain(error, self._database) from error

    async def _run(self, statements: Sequence[SqlStatement]) -> list[ResultRows]:
        wire = await self._take()
        try:
            future = wire.run(statements, within=self._timings.answer)
        except BaseException:
            self._put(wire)
            raise
        future.add_done_callback(lambda done: self._give_back(wire, done))  # also if the caller is cancelled
        return await asyncio.shield(future)

    async def _take(self) -> Wire:
        while True:
            if self._closed:
                raise Unavailable(CLOSED)
            if (problem := self._stopped()) is not None:
                raise problem
            while self._idle:
                wire = self._idle.pop()
                if not wire.lost:
                    return wire
                self._open.discard(wire)
            if len(self._open) + self._connecting < READERS:
                return await self._connect()
            waiter: asyncio.Future[Wire | None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                given = await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._put(waiter.result())
                raise
            if given is not None:
                return given

    async def _connect(self) -> Wire:
        self._connecting += 1
        try:
            wire = await connect(self._database, {"default_transaction_read_only": "on"})
        except BaseException:
            self._connecting -= 1
            self._put(None)  # somebody else may try
            raise
        self._connecting -= 1
        if self._closed:
            wire.close()
            raise Unavailable(CLOSED)
        self._open.add(wire)
        return wire

    def _give_back(self, wire: Wire, done: asyncio.Future[list[ResultRows]]) -> None:
        error = done.exception()  # if the caller was cancelled, nobody else asks
        if wire.lost or self._closed or isinstance(error, psycopg.errors.FeatureNotSupported):
            wire.close()
            self._open.discard(wire)
            self._put(None)
        else:
            self._put(wire)

    def _put(self, wire: Wire | None) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(wire)
                return
        if wire is not None:
            self._idle.append(wire)

    async def close(self) -> None:
        """Close the connections; reads that are under way fail."""
        self._closed = True
        for wire in [*self._open]:
            wire.close()
        while self._waiting:
            self._put(None)
