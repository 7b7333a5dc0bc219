"""Starts a gateway as `holdfast serve` does, with other timings where a test would wait too long:

python serve.py HOME PORT '{"timings": {"gateway.unauthenticated": 0.5}}'
"""

from __future__ import annotations

import ctypes
import json
import resource
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.timings import USUAL, Timings

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """A test that is killed leaves no gateway behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def set_clock(seconds: float) -> None:
    """Let the wall clock of this process be wrong by so much. Clocks that count since the boot cannot be set."""
    true_time, true_time_ns = time.time, time.time_ns
    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: true_time_ns() + int(seconds * 1_000_000_000)


@dataclass(frozen=True, slots=True)
class Options:
    """What a test wants to be different; see `GatewayProcess`."""

    timings: Timings
    default_port: int


def options(given: str) -> Options:
    """Read them, and limit the open files of this process."""
    from holdfast.app import DEFAULT_PORT

    wanted: dict[str, Any] = json.loads(given)
    if wanted.get("open_files"):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted["open_files"],) * 2)
    if seconds := wanted.get("clock_seconds"):
        set_clock(seconds)
    timings = USUAL
    for name, value in wanted["timings"].items():
        group, _, field = name.partition(".")
        timings = replace(timings, **{group: replace(getattr(timings, group), **{field: value}) if field else value})
    return Options(timings, wanted.get("default_port") or DEFAULT_PORT)


def main() -> int:
    home, port, given = sys.argv[1:]
    die_with_parent()
    from holdfast.app import serve
    from holdfast.config import Home

    chosen = options(given)
    return serve(
        Home(Path(home)),
        port=int(port) if port else None,
        background=True,
        default_port=chosen.default_port,
        timings=chosen.timings,
    )


if __name__ == "__main__":
    sys.exit(main())
