"""Who looks at what now: pages that are visible say so every few seconds, terminals follow the events of a session, and
whoever does something there looks at it, too.

Kept in memory: after a restart nobody looks until they say so again. Nodes on one database inform each other, since
only one of them notifies people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.clock import Clock
from holdfast.domain.errors import HoldfastError
from holdfast.periodic import PeriodicTask
from holdfast.store.node_exchange import NodeExchange

LOOKING_MS = 30_000
"""Somebody who looked this long ago still counts as looking."""
MOST = 1_000
SHARE_SECONDS = 10.0


class Presence:
    """When somebody last looked at each stream."""

    def __init__(self, clock: Clock, exchange: NodeExchange | None = None) -> None:
        self._clock = clock
        self._exchange = exchange
        self._unshared: set[str] = set()
        """What was looked at on this node since other nodes were informed."""
        self.sharing = PeriodicTask(self._share, name="who looks at what", every=SHARE_SECONDS)
        self._looks: dict[str, int] = {}
        self._attached: Counter[str] = Counter()

    def look(self, streams: list[str], *, at: int | None = None) -> None:
        """Somebody looks at these now, or looked at them at another time."""
        now = self._clock.now()
        if at is None and self._exchange is not None:
            self._unshared.update(streams)
            self.sharing.wake()
        at = now if at is None else at
        for stream in streams:
            before = self._looks.pop(stream, 0)
            self._looks[stream] = at if before > now else max(at, before)
        while len(self._looks) > MOST:
            del self._looks[next(iter(self._looks))]

    @contextmanager
    def attached(self, stream: str) -> Iterator[None]:
        """Somebody looks at it for as long as this lasts."""
        self._attached[stream] += 1
        self.look([stream])
        try:
            yield
        finally:
            self._attached[stream] -= 1
            if not self._attached[stream]:
                del self._attached[stream]
            self.look([stream])

    async def _share(self) -> None:
        streams, self._unshared = self._unshared | {*self._attached}, set()
        if self._exchange is not None and streams:
            await self._exchange.note_looks(sorted(streams)[:MOST])

    async def refresh(self, stream: str) -> None:
        """Know whether somebody looks at it on another node, as far as that can be asked now."""
        if self._exchange is None:
            return
        with suppress(HoldfastError):
            if (age := await self._exchange.look_age(stream)) is not None:
                self.look([stream], at=self._clock.now() - max(0, age))

    def last_look(self, stream: str) -> int:
        """When somebody last looked at it; 0 when nobody did since the start."""
        now = self._clock.now()
        at = now if stream in self._attached else self._looks.get(stream, 0)
        return at if at <= now else 0  # a look in the future: the clock was set back, and when it was is not known

    def until(self, stream: str) -> int:
        """Until when somebody counts as looking at it; in the past when nobody does."""
        return self.last_look(stream) + LOOKING_MS
