"""The writer of a node: many operations, one transaction; the nodes take turns by one lock.

    trip 1: BEGIN, the lock, what the operations must know (`facts.py`)
    decide: in memory (`transaction.py`)
    trip 2: what they write, COMMIT

Whatever waits when a commit is through goes into the next one. A statement that asked for the lock and for facts at
once would see the facts as they were before it had the lock, so these are two statements. When the connection is lost
before the second trip, nothing was written, and the operations are tried again for some seconds. When it is lost during
the second trip, nobody knows: those with a command id are tried again, since a command is stored once; the others are
refused, as soon as the server has ended the transaction, so that whoever looks then sees whether it was committed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg

from holdfast.domain.errors import Corrupt, Fenced, HoldfastError, Unavailable
from holdfast.store.contract import StoreHealth
from holdfast.store.decisions import NewEvent
from holdfast.store.postgres.connections import TURN, WRITER, Database, connect
from holdfast.store.postgres.facts import KnownFacts, Needs
from holdfast.store.postgres.facts import MissingFacts as Missing
from holdfast.store.postgres.node_life import NodeLife
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.steps import Steps
from holdfast.store.postgres.transaction import BatchTransaction, SavedText
from holdfast.store.postgres.troubles import (
    in_doubt_after,
    is_trouble,
    locked,
    lost,
    refusal,
    shorter_log,
)
from holdfast.store.postgres.wire import BEGIN, COMMIT, ROLLBACK, ConnectionEnded, Wire
from holdfast.timings import StoreTimings

BATCH = 512
KNOWN_TEXTS = 10_000
CLOSED = "The gateway is shutting down."
RETRY_PAUSE_SECONDS = 0.05
T = TypeVar("T")
log = logging.getLogger(__name__)
BatchOperation = Callable[[BatchTransaction], T]
"""Something to do in the next transaction: it checks, then writes; to refuse, it raises a HoldfastError first."""


Work = Callable[[Steps], Awaitable[T]]


@dataclass(slots=True)
class _Request:
    future: asyncio.Future[Any]
    operation: BatchOperation[Any] | None = None
    work: Work[Any] | None = None
    """Instead of an operation: it has a transaction of its own."""
    needs: Needs = field(default_factory=Needs)
    repeatable: bool = False
    """Whether it may be tried again although nobody knows if it happened."""
    asked: float = field(default_factory=time.monotonic)
    result: Any = None
    error: Exception | None = None
    again: bool = False


class PostgresWriter:
    """Owns the connection that writes. One transaction at a time. Made on a running loop."""

    def __init__(
        self,
        database: Database,
        life: NodeLife,
        timings: StoreTimings,
        committed: Callable[[list[NewEvent], KnownFacts], None],
    ) -> None:
        self._database = database
        self._life = life
        self._timings = timings
        self._committed = committed
        self._waiting: list[_Request] = []
        self._arrived = asyncio.Event()
        self._closed = False
        self._wire: Wire | None = None
        self._held: dict[str, int] = {}
        """The tokens of the leases that this life has taken."""
        self._held_in = 0
        """The life that this is about."""
        self._saved: dict[str, SavedText] = {}
        self._acknowledged = 0
        """The highest seq that we know to be committed."""
        self.stopped: HoldfastError | None = None
        """Why this store takes part no longer; it does not get better by waiting."""
        self.health = StoreHealth()
        self.commits = 0
        self.commit_seconds = 0.0
        self._task = asyncio.create_task(self._work(), name="writer of the store")

    def token(self, stream: str) -> int:
        """Return the token of the lease that this node has of a stream; 0 if it has none, as far as it knows."""
        return self._held.get(stream, 0) if self._held_in == self._life.life else 0

    def holds_other_than(self, streams: list[str]) -> bool:
        """Whether this node has the lease of any other stream, as far as it knows."""
        return bool(self._held.keys() - set(streams))

    def gave_back(self, keep: list[str]) -> None:
        """Note that this node has only the leases of these streams left."""
        self._held = {stream: token for stream, token in self._held.items() if stream in keep}

    async def _connect(self) -> Wire:
        settings = WRITER | {"lock_timeout": max(1, int(self._timings.lock * 1000))}
        wire = await connect(self._database, settings)
        try:
            await wire.run([statement("wait_for_disk")], within=self._timings.answer)
        except BaseException:
            wire.close()
            raise
        return wire

    async def do(self, operation: BatchOperation[T], needs: Needs, *, repeatable: bool = False) -> T:
        """Run an operation in the next transaction; return when it is durable."""
        return await self._ask(operation=operation, needs=needs, repeatable=repeatable)  # type: ignore[no-any-return]

    async def do_alone(self, work: Work[T], *, repeatable: bool) -> T:
        """Run an operation that asks and writes in turn, in a transaction of its own."""
        return await self._ask(work=work, repeatable=repeatable)  # type: ignore[no-any-return]

    async def _ask(self, **request: Any) -> Any:
        if self._closed:
            raise Unavailable(CLOSED)
        if self.stopped is not None:
            raise self.stopped
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Request(future, **request))
        self._arrived.set()
        return await future

    async def close(self) -> None:
        """Finish what was taken, then stop."""
        self._closed = True
        self._arrived.set()
        await self._task
        if self._wire is not None:
            self._wire.close()

    # --- the loop -------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Commit what waits; while the server takes no writes, find out now and then whether it does again."""
        while not self._closed or self._waiting:
            self._arrived.clear()
            batch = self._next_batch()
            if batch:
                await self._commit(batch)
                if self._answer(batch):
                    await asyncio.sleep(RETRY_PAUSE_SECONDS)
            elif self.health.writable or self.stopped is not None:
                await self._arrived.wait()
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._timings.probe):
                        await self._arrived.wait()
                if not self._waiting and not self._closed:
                    await self._probe()

    def _next_batch(self) -> list[_Request]:
        """What goes into one transaction: an operation of its own, or those up to the next of that kind."""
        count = next((n for n, request in enumerate(self._waiting[:BATCH]) if request.work is not None), BATCH)
        batch, self._waiting = self._waiting[: count or 1], self._waiting[count or 1 :]
        return batch

    def _answer(self, batch: list[_Request]) -> bool:
        """ResultRows the callers; return whether some operations are tried again."""
        again = [request for request in batch if request.again]
        for request in batch:
            if request.future.done() or request.again:
                continue
            if request.error is not None:
                request.future.set_exception(request.error)
            else:
                request.future.set_result(request.result)
        self._waiting = again + self._waiting
        return bool(again)

    async def _probe(self) -> None:
        probe: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        probe.add_done_callback(asyncio.Future.exception)  # a failure is in `health`
        batch = [_Request(probe, operation=BatchTransaction.skip_token)]
        await self._commit(batch)
        self._answer(batch)

    # --- a transaction --------------------------------------------------------------------------

    async def _commit(self, batch: list[_Request]) -> None:
        """Run a batch in one transaction and notify the followers. It never raises: every request gets its answer."""
        for request in batch:
            request.result, request.error, request.again = None, None, False
        started = time.perf_counter()
        in_doubt = False
        try:
            wire = await self._connected()
            known = KnownFacts(await self._life.current())
            await self._begin(wire, known, batch)
            if batch[0].work is not None:
                tx = await self._run_steps(wire, known, batch[0])
            else:
                tx = await self._decide(wire, known, batch)
            in_doubt = not wire.lost
            await wire.run([*tx.statements(), COMMIT], within=self._timings.answer)
        except Exception as error:
            await self._failed(batch, error, in_doubt=in_doubt)
            if in_doubt and not all(request.again for request in batch):
                await self._wait_settled()
            return
        self._keep(tx, time.perf_counter() - started)
        if tx.stored or tx.has_news:
            self._committed(tx.stored, known)

    def _keep(self, tx: BatchTransaction, seconds: float) -> None:
        """Remember what was committed."""
        self._acknowledged = max(self._acknowledged, tx.last_seq)
        if self._held_in != tx.life:
            self._held_in, self._held = tx.life, {}
        self._held |= tx.granted
        for stream, saved in tx.new_saved.items():
            if saved is None:
                self._saved.pop(stream, None)
            else:
                self._saved[stream] = saved
        if len(self._saved) > KNOWN_TEXTS:
            self._saved.clear()
        self.commits += 1
        self.commit_seconds += seconds
        self.health = StoreHealth()

    async def _begin(self, wire: Wire, known: KnownFacts, batch: list[_Request]) -> None:
        needs = Needs()
        for request in batch:
            needs.add(request.needs)
        turn = statement("take_turn", {"key": TURN, "schema": self._database.schema})
        asked = [BEGIN, turn, known.state_statement(), *known.statements(needs)]
        answers = iter(await wire.run(asked, within=self._timings.lock + self._timings.answer))
        next(answers), next(answers)
        known.take_state(next(answers))
        known.take(needs, answers)
        if known.last_seq < self._acknowledged:
            raise shorter_log(known.last_seq, self._acknowledged)
        if not known.is_alive:
            self._life.ended(known.life)
            raise lost(self._database, "the other nodes took this one for lost")

    async def _decide(self, wire: Wire, known: KnownFacts, batch: list[_Request]) -> BatchTransaction:
        while True:
            tx = BatchTransaction(known, self._saved)
            try:
                for request in batch:
                    request.result, request.error = None, None
                    assert request.operation is not None
                    try:
                        request.result = request.operation(tx)
                    except HoldfastError as refused:
                        request.error = refused
                return tx
            except Missing as missing:
                answers = await wire.run(known.statements(missing.needs), within=self._timings.answer)
                known.take(missing.needs, iter(answers))

    async def _run_steps(self, wire: Wire, known: KnownFacts, request: _Request) -> BatchTransaction:
        assert request.work is not None
        tx = BatchTransaction(known, self._saved)
        try:
            request.result = await request.work(Steps(wire, known, tx, self._timings.answer))
        except HoldfastError as refused:
            request.error = refused
        return tx

    async def _connected(self) -> Wire:
        if self._wire is None or self._wire.lost:
            self._saved.clear()  # a crash of the server has emptied the table
            self._wire = await self._connect()
        return self._wire

    # --- what can go wrong ----------------------------------------------------------------------

    async def _failed(self, batch: list[_Request], error: Exception, *, in_doubt: bool) -> None:
        """Report no success. Trouble of the server is for all of them; the error of an operation for that one only."""
        for request in batch:
            request.result, request.error = None, None
        await self._roll_back()
        match error:
            case ConnectionEnded():
                self._lost(batch, str(error), in_doubt=in_doubt)
            case Corrupt() | Fenced():
                self._stop(batch, error)
            case HoldfastError():  # it could not be connected
                self._retry(batch, Unavailable(error.message, hint=error.hint))
            case psycopg.errors.LockNotAvailable() | psycopg.errors.QueryCanceled():
                self._retry(batch, locked(self._database))
            case psycopg.errors.FeatureNotSupported():  # a table was changed by a newer version: prepare it again
                self._lost(batch, str(error), in_doubt=False)
                if self._wire is not None:
                    self._wire.close(str(error))
            case psycopg.Error() if is_trouble(error):
                self._refuse(batch, refusal(error, self._database))
            case _ if len(batch) > 1:
                for request in batch:
                    await self._commit([request])
            case _:
                batch[0].error = error

    async def _roll_back(self) -> None:
        if self._wire is None or self._wire.lost:
            return
        try:
            await self._wire.run([ROLLBACK], within=self._timings.answer)
        except (ConnectionEnded, psycopg.Error) as worse:
            self._wire.close(str(worse))

    async def _wait_settled(self) -> None:
        """Wait until the transaction of a lost connection has ended: until then it has the lock."""
        deadline = time.monotonic() + self._timings.lock
        turn = statement("take_turn", {"key": TURN, "schema": self._database.schema})
        while not self._closed and self.stopped is None and time.monotonic() < deadline:
            try:
                wire = await self._connected()
                await wire.run([BEGIN, turn, ROLLBACK], within=self._timings.lock + self._timings.answer)
                return
            except (HoldfastError, ConnectionEnded, psycopg.Error):  # the server is away, too
                await self._roll_back()
                await asyncio.sleep(RETRY_PAUSE_SECONDS)

    def _lost(self, batch: list[_Request], why: str, *, in_doubt: bool) -> None:
        problem, doubt = lost(self._database, why), in_doubt_after(self._database, why)
        self._retry([request for request in batch if not in_doubt or request.repeatable], problem)
        for request in batch:
            if in_doubt and not request.repeatable:
                request.error = doubt

    def _retry(self, batch: list[_Request], problem: HoldfastError) -> None:
        """Operations that have not waited too long go into the next transaction."""
        now = time.monotonic()
        self._note_problem(problem.message)
        for request in batch:
            request.again = not self._closed and now - request.asked < self._timings.lock
            request.error = None if request.again else problem

    def _refuse(self, batch: list[_Request], problem: HoldfastError) -> None:
        self._note_problem(problem.message)
        for request in batch:
            request.error = problem

    def _stop(self, batch: list[_Request], problem: HoldfastError) -> None:
        log.error("%s", problem.message)
        self.stopped = problem
        self._refuse(batch + self._waiting, problem)
        waiting, self._waiting = self._waiting, []
        self._answer(waiting)

    def _note_problem(self, problem: str) -> None:
        since = int(time.time() * 1000) if self.health.writable else self.health.since
        self.health = StoreHealth(writable=False, problem=problem, since=since)
