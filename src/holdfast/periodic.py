"""Background work that repeats, and the state of what follows the log. An error, even a bug, costs one round."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast.clock import SystemClock, wait_for_event
from holdfast.domain.errors import HoldfastError


@dataclass(slots=True)
class FollowerState:
    """How something that follows the log is doing."""

    name: str
    problem: str = ""
    """Why it cannot get on now; empty while all is well."""
    since: int = 0
    """Since when there is a problem, or none."""
    restarts: int = 0
    """How often it ended and was started again."""


log = logging.getLogger(__name__)


class PeriodicTask:
    """Calls a function every `every` seconds, and when it is woken."""

    def __init__(self, look: Callable[[], Awaitable[object]], *, name: str, every: float, first: float = 0.0) -> None:
        self.state = FollowerState(name)
        self._look = look
        self._every = every
        self._first = first
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Look as soon as possible, and once more if it is looking now."""
        self._woken.set()

    def start(self) -> None:
        """From now on."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Until the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        await asyncio.sleep(self._first)
        while True:
            self._woken.clear()
            problem = ""
            try:
                await self._look()
            except (HoldfastError, OSError) as error:
                log.warning("%s failed and is retried later: %s", self.state.name, error)
                problem = str(error)
            except Exception as error:
                log.exception("%s failed unexpectedly and is retried later", self.state.name)
                problem = f"{type(error).__name__}: {error}"
            if bool(problem) != bool(self.state.problem):
                self.state.since = SystemClock().now()
            self.state.problem = problem
            await wait_for_event(self._woken, within=self._every)
