"""How things are measured: ours and the limit alternate in short bursts, and the ratio is the median of the pairs.

The disk and the neighbours change from second to second; a pair is taken within some 50 ms.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.report import Goal, Line

OURS_SECONDS = 0.030
LIMIT_SECONDS = 0.015
MESSAGE_BYTES = 480
Figure = Callable[[], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured, and where."""

    scratch: Path
    seed: int
    quick: bool
    peers: bool = True
    """Whether other programs are installed and measured beside ours."""

    def rounds(self, full: int) -> int:
        """Fewer when it must be quick, never fewer than three."""
        return max(3, full // 4) if self.quick else full


@dataclass(frozen=True, slots=True)
class Pairs:
    """Figures taken in turn."""

    ours: list[float]
    limit: list[float]

    @property
    def ratios(self) -> list[float]:
        """Pair by pair."""
        return [ours / limit for ours, limit in zip(self.ours, self.limit, strict=True)]

    def line(self, area: str, name: str, unit: str, goal: Goal | None = None) -> Line:
        """The medians as a line of the report."""
        low, middle, high = statistics.quantiles(self.ratios, n=4)
        return Line(
            area=area,
            name=name,
            ours=shown(statistics.median(self.ours), unit),
            limit=shown(statistics.median(self.limit), unit),
            measured=middle,
            goal=goal,
            spread=f"{low:.2f} … {high:.2f}",
        )


async def alternate(ours: Figure, limit: Figure, rounds: int) -> Pairs:
    """Take both in turn; the first pair warms up and does not count."""
    return Pairs(*await in_turn(ours, limit, rounds=rounds))


async def in_turn(*figures: Figure, rounds: int) -> list[list[float]]:
    """Take all figures in each round; the first round warms up and does not count."""
    taken = [[await figure() for figure in figures] for _ in range(rounds + 1)]
    return [list(of_one) for of_one in zip(*taken[1:], strict=True)]


def shown(value: float, unit: str) -> str:
    """A figure for people; seconds as milliseconds."""
    if unit == "s":
        return f"{value * 1000:.1f} ms"
    return f"{value:,.0f} {unit}"


class RawLog:
    """The limit of durable appending: one write and one fdatasync for each message."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._message = b"x" * MESSAGE_BYTES

    def rate(self, seconds: float) -> float:
        """Appends a second."""
        count, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            self.append()
            count += 1
        return count / elapsed

    def append(self) -> None:
        """One of them."""
        os.write(self._file, self._message)
        os.fdatasync(self._file)

    async def burst(self) -> float:
        """A short one, for pairs."""
        return self.rate(LIMIT_SECONDS)

    def close(self) -> None:
        os.close(self._file)


def probe_disk(scratch: Path) -> str:
    """What the disk does at this moment."""
    log = RawLog(scratch / "probe")
    try:
        return f"{log.rate(0.5):,.0f} fdatasync/s"
    finally:
        log.close()


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """How long it takes, in seconds."""
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


def cpu_seconds(pid: int) -> float:
    """Processor time that all threads of a process have used; a signed number as the kernel names its clock."""
    return time.clock_gettime(~pid << 3 | 2)


def machine() -> dict[str, str]:
    """Where this was measured, and with what."""
    model = next((line for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ":unknown processor")
    memory = next((line for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "MemTotal: 0 kB")
    packages = ("holdfast", "uvicorn", "websockets", "starlette", "msgspec")
    return {
        "machine": f"{os.cpu_count()} x {model.partition(':')[2].strip()}, "
        f"{int(memory.split()[1]) / 1024**2:.0f} GiB, {platform.system()} {platform.release()}",
        "versions": f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        + ", ".join(f"{name} {version(name)}" for name in packages),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
