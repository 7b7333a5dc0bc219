"""Drains this node, when somebody asked for that: others continue what they can, the rest ends here, then it stops."""

from __future__ import annotations

import asyncio
import logging

from holdfast.domain.events import session_stream
from holdfast.periodic import PeriodicTask
from holdfast.runtime.runner import Runner
from holdfast.store.contract import Store
from holdfast.tasks.commands import CommandTasks

EVERY_SECONDS = 1.0
log = logging.getLogger(__name__)


class Drain(PeriodicTask):
    """Looks every second whether the node is to be drained."""

    def __init__(self, store: Store, *, runner: Runner, tasks: CommandTasks, shutdown: asyncio.Event) -> None:
        super().__init__(self.look, name="the drain of this node", every=EVERY_SECONDS)
        self._store = store
        self._runner = runner
        self._tasks = tasks
        self._shutdown = shutdown

    async def look(self) -> None:
        """Hand over what others can continue; shut the gateway down when nothing is left."""
        if not self._store.is_draining:
            return
        sessions = await self._runner.hand_over()
        await self._store.hand_over(keep=[session_stream(session) for session in sessions])
        commands = await self._tasks.running_here()
        if not sessions and not commands:
            log.info("this node is drained: nothing is left, it shuts down")
            self._shutdown.set()
