"""Following the log: one way for everything that reacts to what was committed.

A commit is a hint, so a follower also sweeps: at its start and then at intervals. An error with one stream does not
delay the others: that stream is tried again with a growing pause, and so is the follower itself when it
ends. As long as something is left to try again, `state` says so, and `/healthz` and `holdfast doctor` repeat it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn

from holdfast.clock import SystemClock
from holdfast.domain.errors import Corrupt, HoldfastError, Rejected
from holdfast.periodic import FollowerState
from holdfast.store.contract import Store, Subscription, Wanted

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
Handle = Callable[[str, set[str]], Awaitable[None]]
Sweep = Callable[[], Awaitable[None]]
log = logging.getLogger(__name__)


def growing_pause(failures: int, *, first: float = FIRST_PAUSE_SECONDS) -> float:
    """Return how long to wait after this many failures in a row: doubling, up to a minute."""
    return min(max(first, LONGEST_PAUSE_SECONDS), first * 2.0 ** min(failures - 1, 16))


@dataclass(slots=True)
class _Retry:
    kinds: set[str]
    failures: int
    due: float


class LogFollower:
    """Calls `handle` with each stream that has new events which are wanted, and with their kinds."""

    def __init__(
        self,
        store: Store,
        handle: Handle,
        *,
        wanted: Wanted,
        name: str,
        sweep: Sweep,
        sweep_seconds: float,
        first_pause: float = FIRST_PAUSE_SECONDS,
        elsewhere: Wanted | None = None,
    ) -> None:
        """`first_pause`: how long after a first failure it is tried again; each further pause is longer.

        `elsewhere`: which events of other nodes are wanted; by default the same as those of this one.
        """
        self.state = FollowerState(name)
        self._store = store
        self._handle = handle
        self._wanted = wanted
        self._elsewhere = elsewhere
        self._sweep = sweep
        self._sweep_seconds = sweep_seconds
        self._first_pause = first_pause
        self._retries: dict[str, _Retry] = {}
        self._sweep_failures = 0
        self._next_sweep = 0.0
        self._subscribed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return when nothing that is committed from now on is missed."""
        self._task = asyncio.create_task(self._run(), name=f"follower {self.state.name}")
        await self._subscribed.wait()

    async def stop(self) -> None:
        """Until the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> NoReturn:
        failures = 0
        while True:
            try:
                with self._store.subscribe(None, self._wanted, elsewhere=self._elsewhere) as changes:
                    self._subscribed.set()
                    self._next_sweep = 0.0
                    while True:
                        await self._once(changes)
                        failures = 0
            except Exception as error:
                failures += 1
                self.state.restarts += 1
                self._note(f"it ended and starts again: {_words(error)}")
                log.exception("%s ended; it starts again", self.state.name)
                await asyncio.sleep(growing_pause(failures, first=self._first_pause))

    async def _once(self, changes: Subscription) -> None:
        """Handle what changed and what is due again, then wait for more."""
        now = asyncio.get_running_loop().time
        for stream, kinds in changes.drain().items():
            await self._try(stream, kinds)
        for stream, retry in [*self._retries.items()]:
            if retry.due <= now():
                await self._try(stream, set())
        if self._next_sweep <= now():
            await self._try_sweep()
        if not self._retries and not self._sweep_failures:
            self._note("")
        due = min([self._next_sweep, *(retry.due for retry in self._retries.values())])
        try:
            async with asyncio.timeout_at(due):
                await changes.wait()
        except TimeoutError:
            return

    async def _try(self, stream: str, kinds: set[str]) -> None:
        retry = self._retries.get(stream)
        if retry is not None:
            kinds = kinds | retry.kinds
        try:
            await self._handle(stream, kinds)
        except (Rejected, Corrupt) as error:  # deleted meanwhile, or damaged: trying again cannot help
            log.warning("%s skips %s: %s", self.state.name, stream, error)
            self._retries.pop(stream, None)
        except Exception as error:
            failures = 1 if retry is None else retry.failures + 1
            due = asyncio.get_running_loop().time() + growing_pause(failures, first=self._first_pause)
            self._retries[stream] = _Retry(kinds, failures, due)
            self._trouble(stream, error)
        else:
            self._retries.pop(stream, None)

    async def _try_sweep(self) -> None:
        pause = self._sweep_seconds
        try:
            await self._sweep()
            self._sweep_failures = 0
        except Exception as error:
            self._sweep_failures += 1
            pause = min(pause, growing_pause(self._sweep_failures, first=self._first_pause))
            self._trouble("its sweep", error)
        self._next_sweep = asyncio.get_running_loop().time() + pause

    def _trouble(self, what: str, error: Exception) -> None:
        self._note(f"{what} is tried again: {_words(error)}")
        known = isinstance(error, HoldfastError | OSError)
        log.warning("%s: %s", self.state.name, self.state.problem, exc_info=None if known else error)

    def _note(self, problem: str) -> None:
        if bool(problem) != bool(self.state.problem):
            self.state.since = SystemClock().now()
        self.state.problem = problem


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, HoldfastError | OSError) else f"{type(error).__name__}: {error}"
