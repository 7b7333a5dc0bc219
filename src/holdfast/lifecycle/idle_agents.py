"""Closes processes of external agents that have nothing to do: each takes 100 to 600 MB. A message resumes one."""

from __future__ import annotations

from contextlib import suppress

from holdfast.clock import Clock, elapsed
from holdfast.domain.errors import Conflict
from holdfast.domain.events.actor import THE_RUNTIME
from holdfast.domain.session import Session
from holdfast.domain.task import AGENT_CALL
from holdfast.domain.text import duration
from holdfast.periodic import PeriodicTask
from holdfast.profiles import Profiles
from holdfast.sessions import Sessions
from holdfast.settings import ProfileSettings, span_ms
from holdfast.store.contract import Store
from holdfast.tasks.commands import CommandTasks
from holdfast.timings import USUAL, LifecycleTimings


class IdleAgents(PeriodicTask):
    """Looks for processes of external agents that no turn needs."""

    def __init__(
        self,
        store: Store,
        *,
        tasks: CommandTasks,
        sessions: Sessions,
        profiles: Profiles,
        clock: Clock,
        timings: LifecycleTimings = USUAL.lifecycle,
    ) -> None:
        super().__init__(self.run_once, name="idle agents", every=timings.idle_agents, first=timings.idle_agents)
        self._store = store
        self._tasks = tasks
        self._sessions = sessions
        self._profiles = profiles
        self._clock = clock

    async def run_once(self) -> None:
        """Close those that are no longer needed."""
        for row in await self._store.running_tasks():
            if row.call != AGENT_CALL or row.stop_by or not self._tasks.is_here(row):
                continue
            agent = (await self._tasks.task_log.started(row.id)).agent
            if agent is None:
                continue
            session = await self._sessions.get(agent.session)
            if reason := self._why_close(session, row.id):
                with suppress(Conflict):  # it has just ended
                    await self._tasks.request_stop(row, by=THE_RUNTIME, reason=reason, force=False)

    def _why_close(self, session: Session, task: str) -> str:
        """Return why a process is not needed; empty while it is."""
        if not session.exists:
            return "its session was deleted"
        if session.archived:
            return "its session was archived"
        if session.turn is not None or session.queue:
            return ""
        attached = session.attached
        if attached is None or attached.task != task:
            return "no turn of its session uses it"
        if attached.chapter != session.chapter.number:
            return "its session was reset"
        if attached.run != session.run:
            return "its run of the card is over"
        profile = self._profiles.settings.profiles.get(session.profile, ProfileSettings())
        limit, since = span_ms(profile.agent_idle) or 0, session.updated_at
        if session.last_turn is not None:
            since = session.last_turn.ended.at
        return f"it had nothing to do for {duration(limit)}" if elapsed(self._clock, since) >= limit else ""
