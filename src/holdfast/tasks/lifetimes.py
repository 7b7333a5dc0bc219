"""Why a command has no reason to live any more, or never to begin: what it belongs to has ended."""

from __future__ import annotations

import logging

from holdfast.clock import Clock
from holdfast.domain.errors import Corrupt
from holdfast.sessions import Sessions
from holdfast.store.rows import TaskRow
from holdfast.tasks.views import stopper

log = logging.getLogger(__name__)


class TaskLifetimes:
    """Compares commands with the sessions and calls that they belong to."""

    def __init__(self, sessions: Sessions, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock

    async def why_over(self, row: TaskRow, *, begun: bool) -> str:
        """Why it should end; empty while it should not.

        A command that a turn waits for ends with its call, whatever its lifetime is, and so does one that has not begun
        for its call. That is all that a turn ends: the command of the next turn has a call of its own.
        """
        session, call = row.session, row.call
        belongs_to_call = row.foreground or (bool(call) and not begun)
        if not session or (row.lifetime in ("persist", "until") and not belongs_to_call):
            return ""
        try:
            state = await self._sessions.get(session)
        except Corrupt as error:  # nothing is known of its session, so nothing ends because of it
            log.warning("task %s runs on: %s", row.id, error)
            return ""
        if not state.exists:
            return "its session was deleted"
        if state.archived:
            return "its session was archived"
        return "its turn ended" if belongs_to_call and state.open_call(call) is None else ""

    async def why_not_begin(self, row: TaskRow) -> str:
        """Why a command that has not begun never should; empty if nobody cancelled it."""
        if row.stop_by:
            return f"stopped by {stopper(row)}"
        if row.until is not None and self._clock.now() >= row.until:
            return "its time was over"
        return await self.why_over(row, begun=False)


def may_end_commands(_stream: str, kind: str) -> bool:
    """Whether an event of this kind may leave a command behind that nobody needs any more."""
    return kind in ("TurnFinished", "SessionArchived", "SessionDeleted")
