"""Requests between nodes, as rows of a table: the node that is asked takes a row, and writes its answer into it.

One connection sends the requests and answers of this node, and listens on a channel of its own. A hint may
get lost, so it also looks every few seconds. Nothing here waits for the lock of the log.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import psycopg

from holdfast.domain import errors
from holdfast.domain.errors import HoldfastError, NodeAway, Unavailable
from holdfast.store.log_follower import growing_pause
from holdfast.store.node_exchange import NodeExchange, RequestHandler
from holdfast.store.postgres.connections import Database, connect
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.readers import ReadConnections
from holdfast.store.postgres.wire import ConnectionEnded, ResultRows, SqlStatement, Wire
from holdfast.timings import StoreTimings

OLD_MS = 60_000
"""How long after they could have been taken requests are deleted."""
SETTINGS: dict[str, str | int] = {"synchronous_commit": "off"}
"""A copy of an output is durable with the commit that says that the command ended, since that comes after it."""
BROKEN = "The request failed there: {}."
log = logging.getLogger(__name__)


class _Answered(msgspec.Struct, frozen=True):
    """What a node answers: some bytes, or the error that it raised."""

    data: bytes = b""
    error: str = ""
    message: str = ""
    hint: str = ""


@dataclass(slots=True)
class _Queued:
    """Statements for the next trip, with their results."""

    statements: Sequence[SqlStatement]
    results: asyncio.Future[list[ResultRows]]
    is_sent: bool = False
    """From then on only the results show whether they were carried out."""


class PostgresExchange(NodeExchange):
    """Made on a running loop."""

    def __init__(self, database: Database, node: str, readers: ReadConnections, timings: StoreTimings) -> None:
        self._database = database
        self._node = node
        self._readers = readers
        self._timings = timings
        self._answer: RequestHandler | None = None
        self._asked: dict[str, asyncio.Future[bytes]] = {}
        """By request: its answer, which somebody waits for."""
        self._queued: list[_Queued] = []
        self._woken = asyncio.Event()
        self._carrying_out: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._keep_exchanging(), name="requests of other nodes")

    def answer_with(self, answer: RequestHandler) -> None:
        self._answer = answer
        self._woken.set()

    async def close(self) -> None:
        """Stop; what is being carried out is cut."""
        tasks = [self._task, *self._carrying_out]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._fail_queued("the gateway is shutting down")

    # --- asking ---------------------------------------------------------------------------------

    async def ask(self, node: str, request: bytes, *, within: float) -> bytes:
        id = secrets.token_hex(16)
        answered = self._asked[id] = asyncio.get_running_loop().create_future()
        row = {"id": id, "node": node, "asked_by": self._node, "body": request, "within": int(within * 1000)}
        asking = self._queue([statement("ask_node", row), self._wake(node)])
        try:
            await self._results(asking)
            await asyncio.wait({answered}, timeout=within)
            raw = answered.result() if answered.done() else await self._withdraw(id, node, answered)
        except Unavailable as error:
            if asking.is_sent:
                raise _in_doubt(node) from error
            raise
        finally:
            del self._asked[id]
        answer = msgspec.msgpack.decode(raw, type=_Answered)
        if answer.error:
            raise _error(answer)
        return answer.data

    async def _withdraw(self, id: str, node: str, answered: asyncio.Future[bytes]) -> bytes:
        (found,) = await self._do([statement("withdraw_request", {"id": id})])
        if answered.done():
            return answered.result()
        if not found.rows or (found.rows[0][0] and found.rows[0][1] is None):
            raise _in_doubt(node)
        taken, answer = found.rows[0]
        if taken:
            return bytes(answer)
        raise NodeAway(f"Node {node} did not answer in time. Nothing was done.", hint="Try again.")

    def _wake(self, node: str) -> SqlStatement:
        return statement("wake_node", {"channel": self._channel(node)})

    def _channel(self, node: str) -> str:
        """A name of any length makes one that PostgreSQL takes."""
        return "hf" + hashlib.sha256(f"{self._database.schema}/{node}".encode()).hexdigest()[:40]

    async def agree(self, name: str, number: int) -> int:
        _, found = await self._do(
            [statement("agree_on_number", {"name": name, "number": number}), statement("agreed_number", {"name": name})]
        )
        return int(found.rows[0][0])

    async def note_looks(self, streams: list[str]) -> None:
        await self._do([statement("note_looks", {"streams": streams})])

    async def look_age(self, stream: str) -> int | None:
        found = (await self._readers.query("look_age", stream=stream)).rows
        return int(found[0][0]) if found else None

    # --- copies of outputs ----------------------------------------------------------------------

    async def copy_output(self, task: str, pieces: Iterable[tuple[int, bytes]]) -> None:
        for start, data in pieces:
            await self._do([statement("copy_output", {"task": task, "start": start, "data": data})])

    async def read_copy(self, task: str, offset: int) -> tuple[int, bytes] | None:
        found = (await self._readers.query("read_output_copy", task=task, offset=offset)).rows
        return (int(found[0][0]), bytes(found[0][1])) if found else None

    async def drop_copies(self, tasks: list[str]) -> None:
        await self._do([statement("drop_output_copies", {"tasks": tasks}), statement("drop_pruned_copies")])

    # --- the connection -------------------------------------------------------------------------

    async def _do(self, statements: Sequence[SqlStatement]) -> list[ResultRows]:
        """Run statements with the next trip."""
        return await self._results(self._queue(statements))

    def _queue(self, statements: Sequence[SqlStatement]) -> _Queued:
        if self._task.done():
            raise Unavailable("The gateway is shutting down.")
        queued = _Queued(statements, asyncio.get_running_loop().create_future())
        self._queued.append(queued)
        self._woken.set()
        return queued

    async def _results(self, queued: _Queued) -> list[ResultRows]:
        try:
            async with asyncio.timeout(self._timings.lock + self._timings.answer):
                return await queued.results
        except TimeoutError:
            raise Unavailable(f"{self._database} cannot be reached.", hint="It is tried again automatically.") from None

    async def _keep_exchanging(self) -> None:
        """Any error is tried again, since without this task no other node would get an answer."""
        failures = 0
        while True:
            wire: Wire | None = None
            try:
                wire = await connect(self._database, SETTINGS)
                wire.notified = self._woken.set
                listen = SqlStatement(f'LISTEN "{self._channel(self._node)}"')
                old = statement("delete_old_requests", {"age": OLD_MS})
                await wire.run([listen, old, statement("delete_old_looks")], within=self._timings.answer)
                failures = 0
                while True:
                    await self._exchange(wire)
            except Exception as error:
                failures += 1
                known = isinstance(error, ConnectionEnded | psycopg.Error | HoldfastError)
                message = "other nodes get no answer for a moment: %s"
                log.warning(message, error, exc_info=None if known else error)
            finally:
                if wire is not None:
                    wire.close()
            await asyncio.sleep(growing_pause(failures, first=self._timings.reconnect))

    async def _exchange(self, wire: Wire) -> None:
        """One trip: send what is queued, take what is there; then wait for more."""
        self._woken.clear()
        queued, self._queued = [one for one in self._queued if not one.results.done()], []
        sent = [one for trip in queued for one in trip.statements]
        taking = [statement("take_answers", {"node": self._node})]
        if self._answer is not None:
            taking.append(statement("take_requests", {"node": self._node}))
        for trip in queued:
            trip.is_sent = True
        try:
            results = iter(await wire.run([*sent, *taking], within=self._timings.answer))
        except (ConnectionEnded, psycopg.Error) as error:
            self._queued = queued + self._queued
            self._fail_queued(str(error))
            raise
        for trip in queued:
            found = [next(results) for _ in trip.statements]
            if not trip.results.done():
                trip.results.set_result(found)
        for id, answer in next(results).rows:
            if (asked := self._asked.get(id)) is not None and not asked.done():
                asked.set_result(bytes(answer))
        for requests in results:
            for id, asked_by, body in requests.rows:
                doing = asyncio.create_task(self._carry_out(id, asked_by, bytes(body)))
                self._carrying_out.add(doing)
                doing.add_done_callback(self._carrying_out.discard)
        try:
            async with asyncio.timeout(self._timings.look):
                await self._woken.wait()
        except TimeoutError:
            return

    def _fail_queued(self, why: str) -> None:
        queued, self._queued = self._queued, []
        for trip in queued:
            if not trip.results.done():
                trip.results.set_exception(Unavailable(f"{self._database} cannot be asked: {why}.", hint="Try again."))

    async def _carry_out(self, id: str, asked_by: str, body: bytes) -> None:
        assert self._answer is not None
        try:
            answered = _Answered(await self._answer(body))
        except HoldfastError as error:
            answered = _Answered(error=type(error).__name__, message=error.message, hint=error.hint)
        except Exception as error:
            log.exception("a request of node %s failed", asked_by)
            answered = _Answered(error="Unavailable", message=BROKEN.format(f"{type(error).__name__}: {error}"))
        row = {"id": id, "answer": msgspec.msgpack.encode(answered)}
        try:
            await self._do([statement("answer_request", row), self._wake(asked_by)])
        except HoldfastError as error:
            log.warning("node %s does not get an answer: %s", asked_by, error)


def _in_doubt(node: str) -> NodeAway:
    what = f"Node {node} did not answer in time: it is not known whether it did what it was asked."
    return NodeAway(what, hint="Look at the task before you try again.")


def _error(answer: _Answered) -> HoldfastError:
    """Return the error that the other node raised."""
    kind: type[HoldfastError] = getattr(errors, answer.error, Unavailable)
    return kind(answer.message, hint=answer.hint)
