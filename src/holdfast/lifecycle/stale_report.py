"""Reports once a day which running commands are no longer needed; each node those that run there.

It stops nothing; `holdfast tasks stale --stop` or the dashboard can.
"""

from __future__ import annotations

import logging

from holdfast.clock import Clock
from holdfast.domain.errors import HoldfastError
from holdfast.domain.events import SYSTEM
from holdfast.domain.events.system import StaleListed
from holdfast.lifecycle.reset_scheduler import daily_hour
from holdfast.periodic import PeriodicTask
from holdfast.profiles import Profiles
from holdfast.store.contract import Append, Store, Write
from holdfast.tasks.queries import TaskQueries
from holdfast.timings import USUAL, LifecycleTimings

USUAL_HOUR = 4
log = logging.getLogger(__name__)


class StaleReport(PeriodicTask):
    """Writes the report at the daily hour."""

    def __init__(
        self,
        store: Store,
        task_queries: TaskQueries,
        clock: Clock,
        profiles: Profiles,
        timings: LifecycleTimings = USUAL.lifecycle,
    ) -> None:
        super().__init__(self.run_once, name="the list of stale commands", every=timings.stale_check)
        self._store = store
        self._task_queries = task_queries
        self._clock = clock
        self._profiles = profiles
        self._listed: int | None = None

    async def run_once(self) -> bool:
        """Write the report if the daily hour has passed since the last one; return whether it lists any command."""
        rules = self._profiles.settings.session_reset
        hour = USUAL_HOUR if rules.at_hour is None else rules.at_hour
        passed, _ = daily_hour(self._clock.now(), hour, rules.timezone or "")
        before, self._listed = self._listed, passed
        if before is None or before == passed:
            return False
        found = [view for view in await self._task_queries.running(here=True) if view.stale]
        if not found:
            return False
        event = StaleListed(tasks=[view.id for view in found], reasons=[view.stale for view in found])
        try:
            await self._store.append(Append((Write(SYSTEM, (event,)),), self._clock.now()))
        except HoldfastError:
            self._listed = before
            raise
        for view in found:
            log.info("stale: %s '%s': %s; `holdfast tasks stale --stop` stops it", view.id, view.title, view.stale)
        return True
