"""The processes behind a card: commands that its workers started, and workers that are processes themselves.

No new worker begins before the one before it is proven gone.
"""

from __future__ import annotations

import contextlib

from holdfast.clock import Clock
from holdfast.domain.card import Card
from holdfast.domain.dispatch import resumable
from holdfast.domain.errors import VersionConflict
from holdfast.domain.events.actor import THE_BOARD, Actor
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.sessions import Sessions
from holdfast.store.contract import Append, Store, Write
from holdfast.store.rows import TaskRow


class CardProcesses:
    """Finds the processes of cards, and ends them."""

    def __init__(self, store: Store, *, sessions: Sessions, running: RunningTasks, clock: Clock) -> None:
        self._store = store
        self._sessions = sessions
        self._running = running
        self._clock = clock

    async def commands(self, card: Card) -> list[TaskRow]:
        """Return the running commands that its workers started."""
        if not card.runs:
            return []
        sessions = {run.started.session for run in card.runs}
        running = await self._store.running_tasks()
        return [row for row in running if row.kind == "process" and row.session in sessions]

    async def external_workers(self, card: Card) -> list[TaskRow]:
        """Return the running processes of external agents that worked on it."""
        sessions = [await self._sessions.get(id) for id in {run.started.session for run in card.runs}]
        known = [one for session in sessions for one in (session.attached, session.output_read) if one is not None]
        tasks = {one.task for one in known}
        return [row for row in await self._store.running_tasks() if row.id in tasks] if tasks else []

    async def all(self, card: Card) -> list[TaskRow]:
        """Return both."""
        return [*await self.commands(card), *await self.external_workers(card)]

    async def stop_writes(self, rows: list[TaskRow], *, by: Actor, reason: str) -> tuple[Write, ...]:
        """Return the writes that stop processes, unless they are being stopped or a turn waits for them."""
        left = {row.id: reason for row in rows if not (row.stop_by or row.foreground)}
        return await self._running.stop_writes(left, [], by=by)

    async def end_all(self, card: Card, *, reason: str) -> bool:
        """Stop all of them; return whether they have ended."""
        writes = await self.stop_writes(await self.all(card), by=THE_BOARD, reason=reason)
        if writes:
            with contextlib.suppress(VersionConflict):  # one of them has just ended
                self._running.signal((await self._store.append(Append(writes, self._clock.now()))).records)
        return not await self.all(card)

    async def previous_worker(self, card: Card) -> str:
        """Return what keeps an earlier worker active: a turn, or a process that is being stopped; empty if nothing."""
        last = resumable(card)  # between runs a person may use its session
        for session in {run.started.session for run in [*card.runs[-3:], *([last] if last else [])]}:
            turn = (await self._sessions.get(session)).turn
            if turn is not None:
                return f"turn {turn.number} of session {session} has not ended"
        ends = [row.id for row in await self.commands(card) if row.stop_by]
        return f"its command (task {ends[0]}) is being stopped" if ends else ""
