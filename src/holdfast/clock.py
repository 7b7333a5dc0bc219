"""Time, as something that is passed in."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

PIECE_MS = 5_000


class Clock(Protocol):
    """The time in milliseconds since 1970, for display and for ages."""

    def now(self) -> int:
        """The wall clock."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000


def elapsed(clock: Clock, since: int) -> int:
    """Milliseconds since a moment; never negative, even if the wall clock was set back."""
    return max(0, clock.now() - since)


async def until(clock: Clock, moment: int, *, piece_ms: int = PIECE_MS) -> None:
    """Wait for a moment, and no longer than that was away at first, whatever the wall clock does.

    In pieces: timers stop while the machine sleeps, and that time is not waited for again.
    """
    left = moment - clock.now()
    while left > 0:
        piece = min(left, piece_ms)
        await asyncio.sleep(piece / 1000)
        left = min(left - piece, moment - clock.now())


async def wait_for_event(event: asyncio.Event, *, within: float) -> bool:
    """Wait until the event is set, or for this many seconds; return whether it was set.

    Not with `wait_for`: up to Python 3.11 that swallows a cancellation that comes together with the event.
    """
    try:
        async with asyncio.timeout(within):
            return await event.wait()
    except TimeoutError:
        return False
