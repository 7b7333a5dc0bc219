"""Compares commands with the sessions and calls that they belong to (`domain/task.py` has the rule)."""

from __future__ import annotations

import logging

from holdfast.clock import Clock
from holdfast.domain.errors import Corrupt
from holdfast.domain.task import why_over
from holdfast.sessions import Sessions
from holdfast.store.rows import TaskRow
from holdfast.tasks.views import stopper

log = logging.getLogger(__name__)


class TaskLifetimes:
    """Checks whether a command must end with its session or call."""

    def __init__(self, sessions: Sessions, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock

    async def why_over(self, row: TaskRow, *, begun: bool) -> str:
        """Return why a command must end, or must not start; empty while it may run."""
        if not row.session:
            return ""
        try:
            session = await self._sessions.get(row.session)
        except Corrupt as error:  # a session that cannot be read is no reason to stop its commands
            log.warning("task %s keeps running, since its session cannot be read: %s", row.id, error)
            return ""
        return why_over(session, call=row.call, foreground=row.foreground, lifetime=row.lifetime, begun=begun)

    async def why_not_begin(self, row: TaskRow) -> str:
        """Return why a command that has not started must not start; empty if it may."""
        if row.stop_by:
            return f"stopped by {stopper(row)}"
        if row.until is not None and self._clock.now() >= row.until:
            return "its time limit had passed"
        return await self.why_over(row, begun=False)
