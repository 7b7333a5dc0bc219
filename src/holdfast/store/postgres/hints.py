"""What other nodes commit: they send a hint, this node reads on from where it was, and wakes its followers.

A hint is sent after the commit, in a transaction of its own and at most every few milliseconds: NOTIFY inside of the
transaction takes a lock of the whole server and costs most of the throughput. A hint may get lost, so every few seconds
the log is read anyway. While there is no other node, nothing is sent. Own commits are reported at once, by the writer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import psycopg

from holdfast.domain.errors import HoldfastError
from holdfast.store.decisions import NewEvent
from holdfast.store.log_follower import growing_pause
from holdfast.store.postgres.connections import Database, connect
from holdfast.store.postgres.facts import KnownFacts
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.wire import ConnectionEnded, SqlStatement, Wire
from holdfast.store.subscriptions import Subscriptions
from holdfast.timings import StoreTimings

BETWEEN_HINTS_SECONDS = 0.005
PAGE = 1_000
log = logging.getLogger(__name__)


class NodeHints:
    """Keeps the followers of this node up to date about the commits of others."""

    def __init__(self, database: Database, subscriptions: Subscriptions, timings: StoreTimings) -> None:
        self._database = database
        self._subscriptions = subscriptions
        self._timings = timings
        self._seq: int | None = None
        """Up to which seq the followers were woken; None before the first look."""
        self._own: deque[tuple[int, int]] = deque()
        """Behind that, the ranges of seq that this node itself has committed."""
        self._changes: dict[str, int] = {}
        """How often rows beside the log were changed, as far as the followers know."""
        self._look, self._tell = asyncio.Event(), asyncio.Event()
        self.listening = asyncio.Event()
        """Set when nothing that is committed from then on is missed."""
        self._task = asyncio.create_task(self._keep_listening(), name="hints of other nodes")

    async def close(self) -> None:
        """Stop listening."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def committed(self, stored: list[NewEvent], known: KnownFacts) -> None:
        """Note a commit of this node: inform the others, and notice if others committed before."""
        if stored:
            self._note_own(stored[0].record.seq, stored[-1].record.seq)
        if known.has_peers:
            self._tell.set()

    def _note_own(self, first: int, last: int) -> None:
        if self._seq is not None and first == self._seq + 1:
            self._seq = last
        else:
            self._own.append((first, last))
            self._look.set()

    async def _keep_listening(self) -> None:
        """Any error is tried again, since without this task commits of other nodes would not be noticed."""
        failures = 0
        while True:
            wire: Wire | None = None
            try:
                wire = await connect(self._database)
                wire.notified = self._look.set
                await wire.run([SqlStatement(f'LISTEN "{self._database.schema}"')], within=self._timings.answer)
                await self._read_on(wire)
                self.listening.set()
                failures = 0
                await self._follow(wire)
            except Exception as error:
                failures += 1
                known = isinstance(error, ConnectionEnded | psycopg.Error | HoldfastError)
                message = "hints of other nodes cannot be received for a moment: %s"
                log.warning(message, error, exc_info=None if known else error)
            finally:
                if wire is not None:
                    wire.close()
            await asyncio.sleep(growing_pause(failures, first=self._timings.reconnect))

    async def _follow(self, wire: Wire) -> None:
        """Read on when there is a hint, and now and then without one; inform the others of commits of this node."""
        loop = asyncio.get_running_loop()
        due = loop.time() + self._timings.look
        while True:
            asked = [asyncio.create_task(event.wait()) for event in (self._look, self._tell)]
            try:
                await asyncio.wait(asked, timeout=max(0.0, due - loop.time()), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in asked:
                    task.cancel()
            if self._tell.is_set():
                self._tell.clear()
                hint = statement("notify_nodes", {"channel": self._database.schema})
                await wire.run([hint], within=self._timings.answer)
                await asyncio.sleep(BETWEEN_HINTS_SECONDS)
            if self._look.is_set() or loop.time() >= due:
                self._look.clear()
                due = loop.time() + self._timings.look
                await self._read_on(wire)

    async def _read_on(self, wire: Wire) -> None:
        """Wake the followers of what was committed since the last look."""
        if self._seq is None:
            (answer,) = await wire.run([statement("last_seq")], within=self._timings.answer)
            self._seq = int(answer.rows[0][0])
        while True:
            parameters: dict[str, object] = {"after": self._seq, "limit": PAGE}
            asked = [statement("changes_beside_log"), statement("new_events", parameters)]
            changes, answer = await wire.run(asked, within=self._timings.answer)
            self._wake_beside_log(dict(changes.rows))
            for seq, stream, kind in answer.rows:
                if seq > self._seq:
                    self._seq = seq
                    if not self._is_own(seq):
                        self._subscriptions.committed_elsewhere(stream, kind)
            if len(answer.rows) < PAGE:
                return

    def _wake_beside_log(self, changes: dict[str, int]) -> None:
        """Wake those who follow rows beside the log, such as the devices, if somebody changed them."""
        for name, count in changes.items():
            if self._changes.get(name) != count:
                self._changes[name] = count
                self._subscriptions.hint(name)

    def _is_own(self, seq: int) -> bool:
        while self._own and self._own[0][1] < seq:
            self._own.popleft()
        return bool(self._own) and self._own[0][0] <= seq
