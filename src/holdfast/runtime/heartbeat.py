"""The gateway's sign of life on disk: after a crash it says how long nobody worked.

A small file, written every few seconds while a turn is at work; not fsynced, since only a crash of the process must not
lose it. Within one boot of the machine the time is measured by a clock that counts while the machine sleeps and that
nobody can set; only across boots the wall clock must do.
"""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path

from holdfast.clock import Clock

BEAT_SECONDS = 2.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
log = logging.getLogger(__name__)


def boot_id() -> str:
    """Which boot of the machine this is: after another one every process of before is gone."""
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
            log.warning("the heartbeat could not be written: %s", error)

    def _absence(self) -> int | None:
        try:
            sign = json.loads(self._file.read_text())
            if sign["boot"] == self._boot:
                return max(0, self._started - int(sign["uptime_ms"]))
            return max(0, self._clock.now() - int(sign["at"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
