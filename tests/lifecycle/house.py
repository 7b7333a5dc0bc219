"""A gateway without its doors that can open chapters: the rig, with commands, resets and a clock that a test moves."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.config import Home
from holdfast.domain.commands import ResetSession, WhatRuns
from holdfast.domain.events.actor import AgentActor
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.events.task import Lifetime, TaskStarted
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.reset import ResetRules
from holdfast.lifecycle.awake_clock import AwakeClock
from holdfast.lifecycle.reset_scheduler import ResetScheduler
from holdfast.lifecycle.reset_service import ResetService
from holdfast.lifecycle.running_tasks import RunningTasks
from holdfast.processes.supervisor import Supervisor
from holdfast.profiles import Profiles
from holdfast.sessions import Caller
from holdfast.store.contract import Appended, CommandKey
from holdfast.store.rows import TaskRow
from holdfast.store.sqlite.store import SqliteStore
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.defaults import CommandDefaults
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.log import TaskLog
from holdfast.tasks.queries import TaskQueries
from tests.actors import person
from tests.runtime.rig import ID, Rig, StoppedClock

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


class House(Rig):
    """See above. `sleep` is the closed lid; `wait` is time that passes awake."""

    profiles: RuledProfiles

    def __init__(
        self,
        home: Path,
        *,
        store: SqliteStore | None = None,
        limits: TurnLimits | None = None,
        clock: StoppedClock | SystemClock | None = None,
    ) -> None:
        profiles = RuledProfiles(home / "no config.toml")
        super().__init__(home, store=store, limits=limits, clock=clock, profiles=profiles)
        context = Home(home / "home")
        os.umask(context.prepare())  # of the whole process: others would inherit it
        self._awake, self._boot = 0.0, 0.0
        awake = AwakeClock(lambda: self._awake, lambda: self._boot)
        self.tasks = CommandTasks(
            self.store,
            task_log=TaskLog(self.store, self.clock, GitSnapshots(context.tasks), self.profiles),
            supervisor=Supervisor(context.tasks),
            defaults=CommandDefaults(context.tasks, self.profiles, 0o022),
            sessions=self.sessions,
            clock=self.clock,
        )
        self.task_queries = TaskQueries(
            self.store, tasks=self.tasks, sessions=self.sessions, clock=self.clock, profiles=self.profiles
        )
        self.running_tasks = RunningTasks(self.store, self.task_queries, self.tasks, awake)
        self.reset_service = ResetService(
            self.store,
            sessions=self.sessions,
            running=self.running_tasks,
            profiles=self.profiles,
            clock=self.clock,
        )
        self.reset_scheduler = ResetScheduler(
            self.store, reset_service=self.reset_service, profiles=self.profiles, awake=awake, clock=self.clock
        )

    async def start(self) -> House:
        await self.tasks.start()
        await super().start()
        return self

    async def close(self) -> None:
        await self.reset_scheduler.stop()
        await self.runner.stop()
        await self.tasks.stop()
        await self.store.close()

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
        assert isinstance(self.clock, StoppedClock)
        self.clock.move(ms)
        self._boot += ms / 1000
        self._awake += ms / 1000 if awake else 0

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
