"""Resets sessions automatically, by their rules.

It reads rows, not folded sessions, so that thousands of idle sessions cost little. If config.toml has mode `none`, it
reads only sessions with a policy of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from holdfast.clock import Clock
from holdfast.domain.errors import HoldfastError
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.reset import Due, NotDue, ResetClockReading, ResetRules, next_reset
from holdfast.domain.session import Session
from holdfast.lifecycle.awake_clock import AwakeClock
from holdfast.lifecycle.reset_service import ResetService
from holdfast.periodic import PeriodicTask
from holdfast.profiles import Profiles
from holdfast.store.contract import Store
from holdfast.store.duties import Duty
from holdfast.timings import USUAL, LifecycleTimings

AT_ONCE = 4
log = logging.getLogger(__name__)


class ResetScheduler(PeriodicTask):
    """Checks every few seconds which sessions are due. The first round has those that was due without a gateway."""

    def __init__(
        self,
        store: Store,
        *,
        reset_service: ResetService,
        profiles: Profiles,
        awake: AwakeClock,
        clock: Clock,
        timings: LifecycleTimings = USUAL.lifecycle,
    ) -> None:
        super().__init__(self.run_once, name="the reset clock", every=timings.reset_check)
        self._store = store
        self._reset_service = reset_service
        self._profiles = profiles
        self._awake = awake
        self._clock = clock
        self._few = asyncio.Semaphore(AT_ONCE)
        self._duty = Duty(store, "reset")

    async def run_once(self) -> None:
        """Run one round, if resets are ours.

        The rows are read first: a round without them would forget how long sessions were idle.
        """
        if not await self._duty.is_ours():
            return
        rows = await self._store.resettable_sessions(own_policy=not self._any_rule())
        self._awake.tick(self._clock.now())
        fallen: list[tuple[str, ResetRules, ResetClockReading]] = []
        for row in rows:
            rules = self._profiles.reset_rules(row.profile, row.reset_policy)
            if rules.mode != "none":
                moment = self._moment(rules, row.id, row.last_active_at, self._awake.age)
                if isinstance(next_reset(row.first_input_at, rules, moment), Due):
                    fallen.append((row.id, rules, moment))
        with self._duty.at_work():
            await asyncio.gather(*(self._one(*one) for one in fallen))

    def _any_rule(self) -> bool:
        """Return whether config.toml resets any session that has no policy of its own."""
        profiles = ["", *self._profiles.names]  # a session whose profile was removed uses the general rules
        return any(self._profiles.reset_rules(profile, ResetPolicy()).mode != "none" for profile in profiles)

    async def _one(self, session: str, rules: ResetRules, moment: ResetClockReading) -> None:
        async with self._few:
            try:
                await self._reset_service.by_rule(session, rules, moment)
            except HoldfastError as error:  # deleted just now, or the disk is full
                log.warning("session %s could not be reset: %s", session, error)
            except Exception:  # a bug must not stop the resets of other sessions
                log.exception("session %s could not be reset because of a bug", session)

    def _moment(
        self, rules: ResetRules, session: str, fresh_at: int, age: Callable[[object, int], int]
    ) -> ResetClockReading:
        """Return the current time by both clocks for a session."""
        now = self._clock.now()
        passed, coming = daily_hour(now, rules.at_hour, rules.timezone)
        return ResetClockReading(
            now=now,
            fresh_at=fresh_at,
            idle_ms=age(("fresh", session, fresh_at), fresh_at),
            boundary=passed,
            since_boundary_ms=age(("hour", passed), passed),
            next_boundary=coming,
        )

    def outlook(self, session: Session) -> NotDue:
        """Return which rule resets a session next, and when, if there is no activity before."""
        rules = self._profiles.reset_rules(session.profile, session.policy)
        if (
            session.first_input is None
            or session.last_active is None
            or session.archived
            or session.card
            or rules.mode == "none"
        ):
            return NotDue()

        def about(key: object, since: int) -> int:
            return self._awake.about(key, since, self._clock.now())

        found = next_reset(
            session.first_input.at, rules, self._moment(rules, session.id, session.last_active.at, about)
        )
        return NotDue(found.rule, found.at)


def daily_hour(now: int, at_hour: int, timezone: str) -> tuple[int, int]:
    """Return the last daily hour and the next one, in milliseconds. Each day has exactly one.

    When daylight saving time skips the hour, it falls on the time change; when it repeats the hour, the first counts.
    """
    zone: tzinfo | None = ZoneInfo(timezone) if timezone else None
    here = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone)
    days = [here.date() + timedelta(days=days) for days in (-2, -1, 0, 1, 2)]
    hours = [_at(datetime(day.year, day.month, day.day, at_hour), zone) for day in days]  # noqa: DTZ001
    return max(hour for hour in hours if hour <= now), min(hour for hour in hours if hour > now)


def _at(local: datetime, zone: tzinfo | None) -> int:
    """Return a local time in milliseconds. Without a zone it is the time of this machine."""
    return int((local.replace(tzinfo=zone) if zone is not None else local).timestamp() * 1000)
