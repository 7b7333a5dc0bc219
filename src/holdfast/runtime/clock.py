"""Time, as something that is passed in."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time in milliseconds since 1970, for display and for ages."""

    def now(self) -> int:
        """The wall clock."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000
