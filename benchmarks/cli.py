"""How long the command line takes, beside an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

from benchmarks.children import gateway
from benchmarks.measure import Figure, Plan, alternate
from benchmarks.report import Goal, Report
from benchmarks.workload import Workload, fill, opened, rest
from holdfast.config import Home

AREA = "cli"
SESSIONS = 20
HOLDFAST = str(Path(sys.executable).with_name("holdfast"))


def command(*words: str) -> Figure:
    """Seconds from start to end of a process."""

    async def run() -> float:
        started = time.perf_counter()
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started

    return run


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    home, work = Home(plan.scratch / "cli"), Workload(plan.seed)
    async with opened(home.path) as store:
        for _ in range(SESSIONS):
            await fill(store, work.id(8), islice(work.turns(tools=False), 5))
        await rest(store)
    nothing = command(sys.executable, "-c", "pass")
    with gateway(home):
        for name, words, goal in (
            ("holdfast --help", ("--help",), 6),
            ("holdfast sessions list", ("--home", str(home.path), "sessions", "list"), 9),
        ):
            pairs = await alternate(command(HOLDFAST, *words), nothing, max(plan.rounds(25), 15))
            report.add(pairs.line(AREA, f"{name}, beside python -c pass", "s", Goal("≤", goal)))
