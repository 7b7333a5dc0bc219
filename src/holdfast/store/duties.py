"""Work that exactly one node does for all of them, such as the board: a lease like that of a session.

It stays with its node as long as that lives, and moves to another one when that ends. A node that is frozen does not
notice that, so whatever is written as part of a duty carries its lease (`at_work`) and is refused in the transaction
that would write it. An embedded store has one node, which has every duty without a lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.domain.errors import HeldElsewhere, Unavailable
from holdfast.store.contract import DUTY_LEASE, Lease, Store

LOOK_SECONDS = 10.0
WHILE_OURS_SECONDS = 1.0


class Duty:
    """One of them, by name."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._stream = f"duty/{name}"
        self._lease: Lease | None = None

    @property
    def is_held(self) -> bool:
        """Whether this node has it for sure."""
        return not self._store.is_shared or (self._lease is not None and self._store.holds(self._lease))

    async def is_ours(self) -> bool:
        """Return whether this node has it; take it if no node that lives does."""
        if self.is_held:
            return True
        holder = await self._store.lease_holder(self._stream)
        if holder is not None and holder.ended_at is None and holder.name != self._store.node:
            return False
        try:
            self._lease = await self._store.claim(self._stream, holder=self._store.node)
        except HeldElsewhere:
            return False
        return True

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let everything that is written inside, also by tasks that start there, carry the lease: LostDuty when it has
        passed to another node. The node must have the duty.
        """
        before = DUTY_LEASE.set(self._lease)
        try:
            yield
        finally:
            DUTY_LEASE.reset(before)

    async def wait_until_ours(self) -> None:
        """Return when this node has it."""
        with self._store.subscribe(None, lambda _, kind: kind in ("NodeDrained", "NodeEnded")) as changes:
            while True:
                changes.drain()
                with suppress(Unavailable):  # the server is away
                    if await self.is_ours():
                        return
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await changes.wait()

    async def wait_until_lost(self) -> None:
        """Return when this node may have it no longer; never where there is one node."""
        while True:
            await asyncio.sleep(WHILE_OURS_SECONDS)
            if not self.is_held:
                return
