"""`python -m benchmarks`: run all areas or one, print each line as it is known, and the table at the end."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
import time
from importlib import import_module
from pathlib import Path

from benchmarks.measure import Plan, machine, probe_disk
from benchmarks.report import Report

AREAS = (
    "append",
    "postgres",
    "cluster",
    "read",
    "stream",
    "turns",
    "cli",
    "gateway",
    "processes",
    "tasks",
    "agents",
    "board",
    "notify",
    "push",
    "browser",
    "peers",
)
SCRATCH = Path(__file__).parent / ".scratch"


def main() -> None:
    """Parse, measure, tell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=AREAS, action="append", help="just this area; may be given again")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--no-peers", action="store_true", help="install and measure no other programs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the lines to this file, too")
    parser.add_argument("--seed", type=int, default=2, metavar="N", help="of all that is random")
    given = parser.parse_args()
    areas = given.only or [area for area in AREAS if not (given.no_peers and area == "peers")]
    SCRATCH.mkdir(exist_ok=True)
    children_like_installed()
    scratch = Path(tempfile.mkdtemp(dir=SCRATCH))
    try:
        report = measure(Plan(scratch, given.seed, quick=given.quick, peers=not given.no_peers), areas)
    finally:
        shutil.rmtree(scratch)
    print("\n" + report.table())
    if given.json is not None:
        report.save(given.json)


def children_like_installed() -> None:
    """Children find compiled modules, as after any installation, whatever this shell says about bytecode."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(SCRATCH / "pycache")


def measure(plan: Plan, areas: list[str]) -> Report:
    """Every area in its order."""
    started = time.monotonic()
    report = Report(machine() | {"seed": str(plan.seed), "disk at the start": probe_disk(plan.scratch)})
    for name, value in report.about.items():
        print(f"{name}: {value}")
    for area in areas:
        try:
            asyncio.run(import_module(f"benchmarks.{area}").run(plan, report))
        except OSError as error:
            report.note(f"{area} stopped: {error}")
    report.about["disk at the end"] = probe_disk(plan.scratch)
    report.about["took"] = f"{time.monotonic() - started:.0f} s" + (", quick" if plan.quick else "")
    return report


if __name__ == "__main__":
    main()
