"""Signals to commands whose stop is in the log: one that asks, and later one that forces."""

from __future__ import annotations

import asyncio

from holdfast.processes.kill import KillReport
from holdfast.processes.supervisor import Supervisor


class StopSignals:
    """The signals that are being sent to commands of this node."""

    def __init__(self, supervisor: Supervisor, grace: float) -> None:
        self._supervisor = supervisor
        self._grace = grace
        self._kills: dict[str, asyncio.Task[KillReport]] = {}

    @property
    def sending(self) -> list[asyncio.Task[KillReport]]:
        """What is under way."""
        return [*self._kills.values()]

    def send(self, task: str, *, force: bool = False) -> None:
        """Signal a command, unless that is under way; with `force` at once with the signal that ends it."""
        before = self._kills.get(task)
        if before is not None and not before.done() and not force:
            return
        if before is not None:
            before.cancel()
        kill = self._kills[task] = asyncio.create_task(self._supervisor.kill(task, grace=0.0 if force else self._grace))
        kill.add_done_callback(lambda _: self._kills.pop(task) if self._kills.get(task) is kill else None)

    async def wait(self, task: str) -> None:
        """Return when nothing is being sent to a command."""
        while (kill := self._kills.get(task)) is not None and not kill.done():
            await asyncio.wait({kill})  # a forced one may have replaced it
