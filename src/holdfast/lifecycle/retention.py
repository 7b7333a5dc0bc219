"""Retention: deletes by the rules in `[retention]`, every hour. Without a rule everything is kept.

Pinned and running tasks are never deleted. Each deletion is an event that names its rule.
"""

from __future__ import annotations

import logging
import secrets

from holdfast.clock import Clock
from holdfast.domain.commands import ArchiveSession
from holdfast.domain.errors import Rejected
from holdfast.domain.events.actor import PersonActor, ServiceActor
from holdfast.periodic import PeriodicTask
from holdfast.profiles import Profiles
from holdfast.sessions import Caller, Sessions
from holdfast.settings import RetentionSettings
from holdfast.store.contract import CommandKey, Store
from holdfast.store.duties import Duty
from holdfast.store.rows import SessionRow
from holdfast.tasks.prune import Prunable, Pruning
from holdfast.timings import USUAL, LifecycleTimings

EVERY_SECONDS = 3600.0
DAY_MS = 86_400_000
MEGABYTE = 1_000_000
ARCHIVE, DELETE = "sessions_archive_days", "sessions_delete_days"
log = logging.getLogger(__name__)


def outlived(tasks: list[Prunable], rules: RetentionSettings, *, now: int) -> dict[str, list[Prunable]]:
    """Return the tasks to delete, by the first rule that applies. `tasks` have ended and are given newest first."""
    gone: dict[str, list[Prunable]] = {}
    size = 0
    for place, task in enumerate(tasks):
        size += task.bytes
        if rules.tasks_days and now - task.ended.finished_at >= rules.tasks_days * DAY_MS:
            rule = f"tasks_days = {rules.tasks_days}"
        elif rules.tasks_count and place >= rules.tasks_count:
            rule = f"tasks_count = {rules.tasks_count}"
        elif rules.tasks_megabytes and size > rules.tasks_megabytes * MEGABYTE:
            rule = f"tasks_megabytes = {rules.tasks_megabytes}"
        else:
            continue
        gone.setdefault(rule, []).append(task)
    return gone


class Retention(PeriodicTask):
    """Applies the rules every hour while it is started, but not at once: a start should be quick."""

    def __init__(
        self,
        store: Store,
        *,
        pruning: Pruning,
        sessions: Sessions,
        profiles: Profiles,
        clock: Clock,
        timings: LifecycleTimings = USUAL.lifecycle,
    ) -> None:
        super().__init__(self._apply_all, name="retention", every=EVERY_SECONDS, first=timings.first_retention)
        self._store = store
        self._pruning = pruning
        self._sessions = sessions
        self._clock = clock
        self._profiles = profiles
        self._duty = Duty(store, "retention")

    @property
    def rules(self) -> RetentionSettings:
        """The rules in force."""
        return self._profiles.settings.retention

    async def preview(self) -> dict[str, list[Prunable]]:
        """Return the tasks that would be deleted now, by rule."""
        rules = self.rules
        if not (rules.tasks_days or rules.tasks_count or rules.tasks_megabytes):
            return {}
        gone = outlived(await self._pruning.ended(), rules, now=self._clock.now())
        return {rule: await self._pruning.detailed(rows) for rule, rows in gone.items()}

    async def apply(self, *, asked_by: PersonActor | None = None) -> dict[str, list[Prunable]]:
        """Delete tasks by the rules; return what was deleted, by rule."""
        gone: dict[str, list[Prunable]] = {}
        for rule, rows in (await self.preview()).items():
            log.info("retention: %s deletes %d tasks", rule, len(rows))
            by = ServiceActor(name="retention", rule=rule, asked_by=asked_by)
            gone[rule] = await self._pruning.remove(rows, by=by)
        return gone

    async def sessions(self) -> dict[str, list[SessionRow]]:
        """Return the sessions that would be archived or deleted, by rule. Active and pinned ones are never."""
        rules, now = self.rules, self._clock.now()
        found: dict[str, list[SessionRow]] = {}
        for name, archived in ((ARCHIVE, False), (DELETE, True)):
            days = int(getattr(rules, name))
            if days:
                rows = await self._store.unused_sessions(archived=archived, before=now - days * DAY_MS)
                found |= {f"{name} = {days}": rows} if rows else {}
        return found

    async def apply_to_sessions(self, *, asked_by: PersonActor | None = None) -> dict[str, list[SessionRow]]:
        """Archive and delete sessions by the rules; return which, by rule. Sessions in use are kept."""
        gone: dict[str, list[SessionRow]] = {}
        for rule, rows in (await self.sessions()).items():
            by = ServiceActor(name="retention", rule=rule, asked_by=asked_by)
            log.info("retention: %s applies to %d sessions", rule, len(rows))
            for row in rows:
                id = row.id
                caller = Caller(CommandKey(f"retention-{secrets.token_hex(12)}", ""), by)
                try:
                    if rule.startswith(DELETE):
                        await self._sessions.delete(id, caller)
                    else:
                        await self._sessions.execute(id, ArchiveSession(), caller)
                except Rejected as error:
                    log.info("session %s is kept: %s", id, error)
                else:
                    gone.setdefault(rule, []).append(row)
        return gone

    async def _apply_all(self) -> None:
        if await self._duty.is_ours():
            with self._duty.at_work():
                await self.apply()
                await self.apply_to_sessions()
