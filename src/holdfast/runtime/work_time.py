"""How long turns were worked on, and for how long no gateway worked.

Work is measured by the monotonic clock, which cannot be set and stops while the machine sleeps. The time before this
gateway is known from the log only.

After a crash a small file, the heartbeat, says how long no gateway has worked. It is written every few seconds while a
turn is running, and not fsynced, since only a crash of the process must not lose it. Within one boot of the machine its
time is that of a clock that counts while the machine sleeps and cannot be set; across boots it is the wall clock.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.clock import Clock
from holdfast.domain.next_step import worked_by_log
from holdfast.domain.session import Session

BEAT_SECONDS = 2.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Worked:
    turn: int
    ms: float


class WorkTime:
    """The time spent on the open turn of each session, without waiting for a person."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._worked: dict[str, _Worked] = {}

    def spent_ms(self, session: Session) -> int:
        """Return the milliseconds of work on a session's open turn; 0 when none is open."""
        turn = session.turn
        if turn is None:
            self._worked.pop(session.id, None)
            return 0
        known = self._worked.get(session.id)
        if known is None or known.turn != turn.number:
            known = self._worked[session.id] = _Worked(turn.number, worked_by_log(turn, now=turn.last_done.at))
        return int(known.ms)

    @contextmanager
    def measured(self, session: Session) -> Iterator[None]:
        """Count the time in this block as work, unless it waits for a person."""
        waits = session.turn is not None and session.turn.wait is not None and session.turn.wait.purpose != "retry"
        self.spent_ms(session)
        began = self._monotonic()
        try:
            yield
        finally:
            if (known := self._worked.get(session.id)) is not None and not waits:
                known.ms += (self._monotonic() - began) * 1000


# --- the sign of life -----------------------------------------------------------------------------


def boot_id() -> str:
    """Which boot of the machine this is: all processes from before another boot are gone."""
    return BOOT_ID.read_text().strip() if BOOT_ID.exists() else "unknown"


def uptime_ms() -> int:
    """Milliseconds since the boot of the machine, sleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class HeartbeatFile:
    """Reads at its making what the last gateway left, then writes its own."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._boot = boot_id()
        self._started = uptime_ms()
        self._before = self._absence()

    def away_ms(self) -> int | None:
        """How long it is since the last gateway gave its last sign of life; None when it left none."""
        return None if self._before is None else self._before + uptime_ms() - self._started

    def beat(self) -> None:
        """Write a sign of life."""
        sign = {"boot": self._boot, "uptime_ms": uptime_ms(), "at": self._clock.now(), "pid": os.getpid()}
        try:
            self._file.write_text(json.dumps(sign))
        except OSError as error:
            log.warning("the heartbeat was not written: %s", error)

    def _absence(self) -> int | None:
        try:
            sign = json.loads(self._file.read_text())
            if sign["boot"] == self._boot:
                return max(0, self._started - int(sign["uptime_ms"]))
            return max(0, self._clock.now() - int(sign["at"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
