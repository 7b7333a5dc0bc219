"""Ages that count only the time the machine was awake.

The monotonic clock stops while a laptop sleeps and ignores changes of the wall clock, so what is counted by it does not
expire because of either. Only across a restart of the gateway is the wall clock used.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

SLEPT_SECONDS = 5.0
JUMPED_MS = 60_000
log = logging.getLogger(__name__)


def since_boot() -> float:
    """Seconds since the boot of the machine, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class AwakeClock:
    """Awake ages by key. `tick` starts a round; a key that is not used in a round is forgotten."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, since_boot: Callable[[], float] = since_boot
    ) -> None:
        self._monotonic = monotonic
        self._since_boot = since_boot
        self._first: dict[object, tuple[float, int]] = {}
        self._asked: dict[object, tuple[float, int]] = {}
        self._looked: tuple[float, float, int] | None = None
        self._at = monotonic()
        self._now = 0
        self._most: int | None = None
        self._gaps: list[tuple[int, int]] = []
        """When the machine woke up or its clock was set, and by how many milliseconds the wall clock jumped."""

    def tick(self, now: int) -> bool:
        """Start a round at this wall time; return whether the machine slept since the last one."""
        self._at, self._now = self._monotonic(), now
        boot = self._since_boot()
        self._first, self._asked = self._asked, {}
        slept = False
        if self._looked is not None:
            awake, passed = self._at - self._looked[0], boot - self._looked[1]
            slept = passed - awake > SLEPT_SECONDS
            if slept:
                log.info("the machine slept for %.0f s; this does not count as idle time", passed - awake)
            jumped = now - self._looked[2] - int(passed * 1000)
            if abs(jumped) > JUMPED_MS:
                log.warning("the clock was set by %+.0f s; this does not count as idle time", jumped / 1000)
            self._most = int(awake * 1000)
            if slept or abs(jumped) > JUMPED_MS:
                self._gaps.append((now, now - self._looked[2] - self._most))
        self._looked = (self._at, boot, now)
        return slept

    def lost(self, since: int) -> int:
        """Return how many milliseconds of the wall clock since then were sleep or a changed clock."""
        return sum(lost for at, lost in self._gaps if at > since)

    def age(self, key: object, since: int) -> int:
        """Return the awake milliseconds since this wall time. A new key is at most one round old."""
        known = self._asked.get(key) or self._first.get(key)
        if known is None:
            age = max(0, self._now - since)
            known = (self._at, age if self._most is None else min(age, self._most))
        self._asked[key] = known
        return known[1] + int((self._at - known[0]) * 1000)

    def about(self, key: object, since: int, now: int) -> int:
        """Return the awake milliseconds since this wall time, without remembering the key."""
        known = self._asked.get(key) or self._first.get(key)
        if known is None:
            return max(0, now - since)
        return known[1] + int((self._monotonic() - known[0]) * 1000)
