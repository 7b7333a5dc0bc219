"""How long runs have worked and how long nothing moved in them, as far as this gateway has seen it.

Counted from look to look by the monotonic clock and never more than `MOST_SECONDS` at once. So what is counted is
work that was seen: a laptop that sleeps, a clock that is set, a gateway that is stopped or down ends no run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

MOST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Timed:
    """One run, up to the last look."""

    sign: object
    looked: float
    worked: float = 0.0
    still: float = 0.0


class RunTimer:
    """Every open run that is looked at."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._seen: dict[tuple[str, int], _Timed] = {}

    def look(self, run: tuple[str, int], sign: object, *, waits: bool) -> tuple[int, int]:
        """How long it worked, and how long its sign of life stayed the same, in ms. What waits does neither."""
        now = self._monotonic()
        before = self._seen.get(run) or _Timed(sign, now)
        passed = 0.0 if waits else min(MOST_SECONDS, now - before.looked)
        still = before.still + passed if before.sign == sign else 0.0
        seen = self._seen[run] = _Timed(sign, now, before.worked + passed, still)
        return int(seen.worked * 1000), int(seen.still * 1000)

    def only(self, runs: set[tuple[str, int]]) -> None:
        """Forget all others: they ended."""
        self._seen = {run: seen for run, seen in self._seen.items() if run in runs}
