"""Ends the lives of nodes that are lost, so that others can do their work.

Every node looks; the first that sees it ends the life under the lock of the log and writes that down in the same
transaction, so no write of the lost node can come after it.
"""

from __future__ import annotations

import asyncio
import logging
import time

from holdfast.domain.errors import HoldfastError
from holdfast.domain.events import SYSTEM
from holdfast.domain.events.system import NodeDrained, NodeEnded
from holdfast.store.contract import Append, Write
from holdfast.store.postgres.connections import PRESENCE, Database
from holdfast.store.postgres.facts import needs_of_append
from holdfast.store.postgres.node_life import BEATS_PER_LEASE, NodeLife
from holdfast.store.postgres.readers import ReadConnections
from holdfast.store.postgres.steps import Steps
from holdfast.store.postgres.writer import PostgresWriter
from holdfast.timings import StoreTimings

SILENT = "it did not renew its life in time"
CUT = "its connection to the database closed"
LEFT = "it was shut down"
log = logging.getLogger(__name__)


class LostNodes:
    """Looks for nodes that are lost. Made on a running loop."""

    def __init__(
        self,
        database: Database,
        life: NodeLife,
        writer: PostgresWriter,
        readers: ReadConnections,
        timings: StoreTimings,
    ) -> None:
        self._database = database
        self._life = life
        self._writer = writer
        self._readers = readers
        self._pause = timings.lease / BEATS_PER_LEASE
        self._task = asyncio.create_task(self._keep_looking(), name="lost nodes")

    async def close(self) -> None:
        """Stop looking, and end the life of this node: what it worked on is free at once."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._life.is_certain and self._writer.stopped is None:
            try:
                await self._writer.do_alone(self._leave, repeatable=False)
            except HoldfastError as error:
                log.warning("the other nodes find out by themselves that this one has ended: %s", error)

    async def hand_over(self, keep: list[str]) -> None:
        """Give back all leases of this node but those of some streams."""

        async def give_back(steps: Steps) -> None:
            await steps.run("release_leases", {"life": self._life.life, "kept": keep})
            append = Append((Write(SYSTEM, (NodeDrained(node=self._life.node),)),), int(time.time() * 1000))
            await steps.append(append, needs_of_append(append))

        await self._writer.do_alone(give_back, repeatable=False)
        self._writer.gave_back(keep)

    async def look(self) -> None:
        """End the lives of nodes that are lost."""
        if not self._life.is_certain:
            return  # a node that may be lost itself does not judge others
        if (await self._readers.query("lost_lives", **self._question)).rows:
            await self._writer.do_alone(self._end_lost, repeatable=False)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            try:
                await self.look()
            except HoldfastError as error:
                log.warning("nodes that may be lost are looked for again: %s", error)

    @property
    def _question(self) -> dict[str, object]:
        return {
            "life": self._life.life,
            "lease": self._life.lease_ms,
            "key": PRESENCE,
            "schema": self._database.schema,
        }

    async def _end_lost(self, steps: Steps) -> None:
        for life, name, heard_at, silent in (await steps.run("lost_lives", self._question)).rows:
            reason = SILENT if silent else CUT
            log.warning("node %s is lost: %s", name, reason)
            await self._end(steps, life, NodeEnded(node=name, reason=reason, heard_at=heard_at))

    async def _leave(self, steps: Steps) -> None:
        ended = NodeEnded(node=self._life.node, reason=LEFT) if steps.has_peers else None
        await self._end(steps, self._life.life, ended)

    async def _end(self, steps: Steps, life: int, ended: NodeEnded | None) -> None:
        await steps.run("end_life", {"life": life, "reason": LEFT if ended is None else ended.reason})
        if ended is not None:
            append = Append((Write(SYSTEM, (ended,)),), int(time.time() * 1000))
            await steps.append(append, needs_of_append(append))
