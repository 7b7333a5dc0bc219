"""How long runs have worked, and for how long without progress, as far as this gateway has seen it.

Counted from sample to sample by the monotonic clock, and never more than `MOST_SECONDS` at once. So only observed work
counts: a laptop that sleeps, a clock that is set, a gateway that is stopped or down ends no run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

MOST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Timed:
    """One run, up to the last sample."""

    sign: object
    looked: float
    worked: float = 0.0
    still: float = 0.0


class RunTimer:
    """The times of all open runs."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._seen: dict[tuple[str, int], _Timed] = {}

    def look(self, run: tuple[str, int], sign: object, *, waits: bool) -> tuple[int, int]:
        """Return for how many ms a run worked, and how long its sign of life was the same. Waiting does not count."""
        now = self._monotonic()
        before = self._seen.get(run) or _Timed(sign, now)
        passed = 0.0 if waits else min(MOST_SECONDS, now - before.looked)
        still = before.still + passed if before.sign == sign else 0.0
        seen = self._seen[run] = _Timed(sign, now, before.worked + passed, still)
        return int(seen.worked * 1000), int(seen.still * 1000)

    def only(self, runs: set[tuple[str, int]]) -> None:
        """Forget all other runs, which have ended."""
        self._seen = {run: seen for run, seen in self._seen.items() if run in runs}
