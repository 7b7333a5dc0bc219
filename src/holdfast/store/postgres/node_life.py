"""The life of this process as a node, which is renewed again and again, by the clock of the database.

A lease belongs to a life. A node that does not renew its life in time is lost: another one ends its life under the lock
of the log (`lost_nodes.py`), and from then on its leases are free and its writes are refused. The clock decides when
that happens; that nothing is done twice is decided by the tokens, which only grow. Since a node cannot know that it is
lost before it has asked, it starts no effect when its last renewal is older than a lease. A node that was lost and is
back begins another life. Time is measured by a clock that counts while the machine sleeps and cannot be set.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

import psycopg

import holdfast
from holdfast.domain.errors import HoldfastError
from holdfast.store.postgres.connections import PRESENCE, TURN, WRITER, Database, connect
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.troubles import name_in_use, taken_over
from holdfast.store.postgres.wire import BEGIN, BIGINT, COMMIT, Array, ConnectionEnded, ResultRows, Wire
from holdfast.store.tables import KEPT_LIVES, REPLACED
from holdfast.timings import StoreTimings

BEATS_PER_LEASE = 4
log = logging.getLogger(__name__)


def seconds_since_boot() -> float:
    """Seconds since the boot of the machine, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class NodeLife:
    """Who this process is among the nodes. Made on a running loop."""

    def __init__(self, database: Database, node: str, timings: StoreTimings, labels: Sequence[str] = ()) -> None:
        self._database = database
        self.node = node
        self._labels = ",".join(labels)
        self._timings = timings
        self.life = 0
        """0 before it began, and after it was ended by others."""
        self._before = 0
        """The last life, which has ended."""
        self._in_doubt: list[int] = []
        """Lives whose beginning was committed, or was not: the answer was lost."""
        self.is_draining = False
        """Whether somebody wants this node to take nothing new."""
        self._renewed = 0.0
        """When the last renewal that succeeded was asked for."""
        self._wire: Wire | None = None
        self._present = False
        """Whether this connection holds the lock that says that the node is there."""
        self._closed = False
        self._one_at_a_time = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None

    @property
    def lease_ms(self) -> int:
        """How long a life lasts without being renewed."""
        return int(self._timings.lease * 1000)

    @property
    def is_certain(self) -> bool:
        """Whether no other node can have ended this life. False also before it began."""
        return self.life > 0 and not self._closed and seconds_since_boot() < self._renewed + self._timings.lease

    @property
    def overdue_ms(self) -> int:
        """For how long the life should have been renewed; 0 while all is well."""
        late = seconds_since_boot() - self._renewed - self._timings.lease
        return int(late * 1000) if self._renewed and late > 0 else 0

    async def announce(self) -> None:
        """Take the name of the node and begin its life. Unavailable while another process has the name."""
        async with self._one_at_a_time:
            await self._connected()
            if not await self._take_name() and (await self._run("name_in_use", **self._name)).rows[0][0]:
                raise name_in_use(self._database, self.node)  # else the node that has the name is frozen, and was lost
            try:
                await self._begin()
            except (ConnectionEnded, psycopg.Error) as error:  # a full disk, perhaps; the first write tries again
                log.warning("the life of node %s could not begin yet: %s", self.node, error)

    async def _take_name(self) -> bool:
        deadline = time.monotonic() + self._timings.lock
        while not self._present and time.monotonic() < deadline:
            await asyncio.sleep(self._timings.lock / 20)  # a process that has just ended may still be known there
            await self._say_present()
        return self._present

    async def current(self) -> int:
        """Return our life; begin one if there is none. Fenced if another process has taken our name meanwhile."""
        if not self.life:
            async with self._one_at_a_time:
                if not self.life:
                    await self._begin()
        return self.life

    def ended(self, life: int) -> None:
        """Note that another node has ended this life; the next one begins when it is needed."""
        if life == self.life:
            log.warning("node %s was lost to the others for a while; its leases have passed to them", self.node)
            self._before, self.life = life, 0

    async def close(self) -> None:
        """Stop renewing."""
        self._closed = True
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        if self._wire is not None:
            self._wire.close()

    # --- a life ---------------------------------------------------------------------------------

    async def _begin(self) -> None:
        wire, asked = await self._connected(), seconds_since_boot()
        within = self._timings.lock + self._timings.answer
        turn = statement("take_turn", {"key": TURN, "schema": self._database.schema})
        asks = [BEGIN, turn, statement("name_in_use", self._name), statement("next_life")]
        try:
            *_, used, number = await wire.run(asks, within=within)
            self._check_name(taken=used.rows[0][0])
            ((life,),) = number.rows
            now = int(time.time() * 1000)
            begins = [
                statement("end_lives", {"name": self.node, "at": now, "reason": REPLACED}),
                statement("pass_leases_on", {"kept": KEPT_LIVES}),
                statement("delete_ended_lives", {"kept": KEPT_LIVES}),
                statement("begin_life", {"life": life} | self._birth),
                COMMIT,
            ]
            self._in_doubt.append(life)
            await wire.run(begins, within=within)
        except BaseException:
            if not wire.lost:
                wire.close("the life of the node could not begin")  # and with it the transaction
            raise
        self.life, self._in_doubt = life, []
        self._renewed, self.is_draining = asked, False
        if self._beating is None:
            self._beating = asyncio.create_task(self._keep_renewing(), name=f"the life of node {self.node}")

    @property
    def _name(self) -> dict[str, object]:
        return {"name": self.node, "own": Array(BIGINT, self._in_doubt)}

    @property
    def _birth(self) -> dict[str, object]:
        return {
            "name": self.node,
            "version": holdfast.__version__,
            "labels": self._labels,
            "lease": self.lease_ms,
        }

    def _check_name(self, *, taken: bool) -> None:
        if self._before and taken:  # at the start `announce` has asked; a process that was killed has a life, too
            raise taken_over(self._database, self.node)

    async def _keep_renewing(self) -> None:
        pause = self._timings.lease / BEATS_PER_LEASE
        while True:
            await asyncio.sleep(pause)
            try:
                await self._renew()
            except (ConnectionEnded, psycopg.Error, HoldfastError) as error:
                log.warning("the life of node %s was not renewed; it is tried again: %s", self.node, error)

    async def _renew(self) -> None:
        async with self._one_at_a_time:
            await self._connected()
            if not self._present:
                await self._say_present()
            if not self.life:  # it was lost
                await self._begin()
                return
            life, asked = self.life, seconds_since_boot()
            if rows := (await self._run("renew_life", life=life, lease=self.lease_ms)).rows:
                self._renewed, self.is_draining = asked, bool(rows[0][0])
            else:
                self.ended(life)
                await self._begin()

    # --- the connection -------------------------------------------------------------------------

    async def _connected(self) -> Wire:
        if self._wire is None or self._wire.lost:
            settings = WRITER | {"lock_timeout": max(1, int(self._timings.lock * 1000))}
            wire = await connect(self._database, settings)
            if self._closed:
                wire.close()
                raise ConnectionEnded("closed")
            self._wire = wire
            await self._say_present()
        return self._wire

    async def _say_present(self) -> None:
        """Take the lock by which others notice at once that this process is gone, since it ends with the connection."""
        name = f"{self._database.schema}/{self.node}"
        self._present = bool((await self._run("announce_presence", key=PRESENCE, node=name)).rows[0][0])

    async def _run(self, query: str, **parameters: object) -> ResultRows:
        assert self._wire is not None
        (answer,) = await self._wire.run([statement(query, parameters)], within=self._timings.lease)
        return answer
