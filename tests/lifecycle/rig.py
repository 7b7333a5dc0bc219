"""A gateway without its doors that can open chapters: the rig, with commands, resets and a clock that a test moves."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from holdfast.clock import Clock
from holdfast.config import Home
from holdfast.domain.commands import ResetSession, WhatRuns
from holdfast.domain.events.actor import AgentActor
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.events.task import Lifetime, TaskStarted
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.reset import ResetRules
from holdfast.profiles import Profiles
from holdfast.sessions import Caller
from holdfast.store.contract import Appended, CommandKey, Store
from holdfast.store.rows import TaskRow
from holdfast.timings import USUAL, Timings
from tests.actors import person
from tests.runtime.rig import ID, Rig

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class RuledProfiles(Profiles):
    """The same rules for every session."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rules = ResetRules()

    def reset_rules(self, profile: str, policy: ResetPolicy) -> ResetRules:
        return self.rules


class LifecycleRig(Rig):
    """See above. `sleep` is the closed lid; `wait` is time that passes awake."""

    profiles: RuledProfiles

    def __init__(
        self,
        home: Path,
        *,
        store: Store | None = None,
        limits: TurnLimits | None = None,
        clock: Clock | None = None,
        timings: Timings = USUAL,
    ) -> None:
        profiles = RuledProfiles(Home(home).config)
        super().__init__(home, store=store, limits=limits, clock=clock, profiles=profiles, timings=timings)
        self.profiles = profiles

    async def start(self) -> Self:
        await self.tasks.start()
        return await super().start()

    async def end_all(self) -> None:
        """Every command that still runs."""
        for row in await self.store.running_tasks():
            await self.tasks.supervisor.kill(row.id, grace=0)

    # --- time -----------------------------------------------------------------------------------

    async def wait(self, ms: int, *, every: int = 10_000) -> None:
        """Time that passes awake, with a look of the reset clock every few seconds."""
        while ms > 0:
            step = min(ms, every)
            self.passes(step)
            await self.reset_scheduler.run_once()
            ms -= step

    def passes(self, ms: int, *, awake: bool = True) -> None:
        self.move_clock(ms)
        self.boot_seconds += ms / 1000
        self.awake_seconds += ms / 1000 if awake else 0

    # --- people and agents ----------------------------------------------------------------------

    async def reset(self, id: str, *, running: WhatRuns | None = None, note: bool = False) -> Appended:
        caller = Caller(CommandKey(id, "d"), person("ann"))
        return await self.reset_service.by_person(ID, ResetSession(running=running, note=note), caller)

    async def background(
        self, command: str, *, task: str, lifetime: Lifetime = "session", session: str = ID
    ) -> TaskRow:
        """A command that the agent leaves in the background."""
        started = TaskStarted(
            task=task,
            task_kind="process",
            title=command,
            command=command,
            cwd=str(self.home),
            by=AgentActor(session=session),
            session=session,
            lifetime=lifetime,
        )
        await self.tasks.start_command(started)
        return await self.store.task(task)
