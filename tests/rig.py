"""A gateway without its doors, in this process: all parts of it over a real store. A test starts what it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from holdfast.assembly import Machine, assemble
from holdfast.clock import Clock, SystemClock
from holdfast.config import Home
from holdfast.domain.events import session_stream
from holdfast.domain.session import Session
from holdfast.models.registry import ModelRegistry
from holdfast.profiles import Profiles
from holdfast.runtime.agents import Agents
from holdfast.runtime.work_time import HeartbeatFile
from holdfast.store.contract import Store
from holdfast.tasks.sandbox import SandboxBuilder
from holdfast.timings import USUAL, RuntimeTimings, StoreTimings, TaskTimings, Timings
from tests.engines import open_store

QUICK_DISK = Timings(
    store=StoreTimings(probe=0.02), tasks=TaskTimings(retry=0.02), runtime=RuntimeTimings(append_retry=0.02)
)
"""A disk that refused is tried again at once."""
T = TypeVar("T")


class StoppedClock:
    """Stands still unless it is told to move."""

    def __init__(self, now: int) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def move(self, ms: int) -> None:
        self._now += ms


class NoSandbox(SandboxBuilder):
    """A machine without bubblewrap: commands start quickly, and see every file of the test."""

    problem = "this test has none"


class GatewayRig:
    """One life of a gateway on a home. Made on a running loop; nothing moves by itself until it is started.

    The clocks that count seconds stand still: a test sets them.
    """

    def __init__(
        self,
        home: Path,
        profiles: Profiles,
        *,
        store: Store | None = None,
        clock: Clock | None = None,
        agents: Agents | None = None,
        heartbeat: HeartbeatFile | None = None,
        timings: Timings = USUAL,
    ) -> None:
        self.home = home
        self.clock = clock or SystemClock()
        self.awake_seconds, self.boot_seconds = 0.0, 0.0
        """Since the start, without and with the time that the machine slept."""
        self.store = store or open_store(Home(home), timings.store)
        machine = Machine(
            clock=self.clock,
            monotonic=lambda: self.awake_seconds,
            since_boot=lambda: self.boot_seconds,
            heartbeat=heartbeat,
            sandbox=NoSandbox(home),
        )
        self.gateway = assemble(
            Home(home),
            self.store,
            profiles=profiles,
            models=ModelRegistry(profiles),
            machine=machine,
            agents=agents,
            timings=timings,
        )
        self.profiles, self.agents = self.gateway.profiles, self.gateway.agents
        self.sessions, self.streaming, self.runner = self.gateway.sessions, self.gateway.streaming, self.gateway.runner
        self.tasks, self.task_queries = self.gateway.tasks, self.gateway.task_queries
        self.running_tasks = self.gateway.running_tasks
        self.cards, self.dispatcher = self.gateway.cards, self.gateway.dispatcher
        self.reset_service, self.reset_scheduler = self.gateway.reset_service, self.gateway.reset_scheduler

    async def close(self) -> None:
        """SIGTERM, whatever was started."""
        await self.dispatcher.stop()
        await self.reset_scheduler.stop()
        await self.runner.stop()
        await self.tasks.stop()
        await self.agents.close()
        await self.store.close()

    def move_clock(self, ms: int) -> None:
        """Move the wall clock, if it is one that stands still."""
        assert isinstance(self.clock, StoppedClock)
        self.clock.move(ms)

    # --- waiting --------------------------------------------------------------------------------

    async def until_stream(self, stream: str, read: Callable[[], Awaitable[T]], enough: Callable[[T], bool]) -> T:
        """Wait until what is read of a stream is so; it is read again whenever the stream grows."""
        with self.store.subscribe(stream) as changes:
            while not enough(found := await read()):
                await changes.wait()
                changes.drain()
        return found

    async def until_session(self, session: str, enough: Callable[[Session], bool]) -> Session:
        """Wait until the session is so."""
        return await self.until_stream(session_stream(session), lambda: self.sessions.get(session), enough)
