"""The archive: a page of many tasks beside the bare query, search in many outputs, and who survives a kill -9."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from tests.actors import person

from benchmarks.measure import Plan, alternate, timed
from benchmarks.peers import PEERS, install
from benchmarks.report import Goal, Line, Report
from benchmarks.workload import Workload, opened, rest
from holdfast.config import Home
from holdfast.domain.events import task_stream
from holdfast.domain.events.task import CommandExited, TaskFinished, TaskStarted
from holdfast.store.contract import Append, Write
from holdfast.store.reads import SessionCursor, TaskFilter
from holdfast.store.sqlite.store import SqliteStore
from holdfast.tasks.views import view

AREA = "tasks"
TASKS, FEWER = 100_000, 10_000
LOGS = 10_000
AT_ONCE = 500
PAGE = 50
BARE = "SELECT * FROM tasks WHERE foreground = 0 ORDER BY started_at DESC, id LIMIT 50"
NEEDLE = "needleinthemiddle"


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    work, home = Workload(plan.seed), Home(plan.scratch / "archive")
    async with opened(home.path) as store:
        await task_log(store, work, FEWER if plan.quick else TASKS, output=False)
        await _list(plan, report, store, home)
    async with opened(plan.scratch / "outputs") as store:
        await task_log(store, work, FEWER if plan.quick else LOGS, output=True)
        await _search(plan, report, store)
    await _survivors(plan, report)


async def task_log(store: SqliteStore, work: Workload, count: int, *, output: bool) -> None:
    """Many ended commands, and one word in the middle of one of them."""
    for start in range(0, count, AT_ONCE):
        writes = []
        for number in range(start, start + AT_ONCE):
            id = work.id(8)
            said = f"{work.text()} {NEEDLE if number == count // 2 else ''} {work.text()}" if output else None
            events = (
                TaskStarted(
                    task=id,
                    task_kind="process",
                    title=f"build {number}",
                    command=work.text(),
                    cwd="/",
                    by=person("bench"),
                ),
                TaskFinished(
                    task=id, outcome="done", reason="exit code 0", end=CommandExited(code=0), output=said, files=[]
                ),
            )
            writes.append(Write(task_stream(id), events, expect=0))
        await store.append(Append(tuple(writes), 1_000 + start))
    await rest(store)


async def _list(plan: Plan, report: Report, store: SqliteStore, home: Home) -> None:
    count = FEWER if plan.quick else TASKS
    with closing(sqlite3.connect(home.database, check_same_thread=False)) as connection:

        async def bare() -> float:
            started = time.perf_counter()
            await asyncio.to_thread(lambda: connection.execute(BARE).fetchall())
            return time.perf_counter() - started

        async def ours() -> float:
            return await timed(page)

        async def page() -> None:
            rows = await store.tasks(TaskFilter(), before=SessionCursor(), limit=PAGE)
            for row in rows:
                view(row, now=0, output_bytes=None, activity=None)
            assert len(rows) == PAGE

        pairs = await alternate(ours, bare, plan.rounds(80))
        report.add(pairs.line(AREA, f"{PAGE} of {count:,} tasks, beside the bare query", "s", Goal("≤", 2)))


async def _search(plan: Plan, report: Report, store: SqliteStore) -> None:
    count = FEWER if plan.quick else LOGS
    taken = []
    for _ in range(plan.rounds(40)):
        started = time.perf_counter()
        assert len(await store.search_outputs(NEEDLE, limit=PAGE)) == 1
        taken.append(time.perf_counter() - started)
    worst = sorted(taken)[len(taken) * 9 // 10] * 1000
    name, goal = f"search in {count:,} outputs, 90th percentile", Goal("≤", 100, " ms")
    report.add(Line(AREA, name, f"{worst:.1f} ms", "", worst, " ms", goal))


async def _survivors(plan: Plan, report: Report) -> None:
    """Four commands each; the parent is killed in the middle."""
    script = str(Path(__file__).with_name("survivor.py"))
    for name, interpreter in _runtimes(report):
        home = plan.scratch / f"survivors-{name}"
        home.mkdir()
        environment = os.environ | {"HERMES_HOME": str(home)}
        begun = subprocess.Popen(
            [interpreter, "-P", script, "begin", name, str(home)], stdout=subprocess.PIPE, env=environment, cwd=home
        )
        assert begun.stdout is not None
        begun.stdout.readline()
        await asyncio.sleep(0.5)
        begun.send_signal(signal.SIGKILL)
        begun.wait()
        await asyncio.sleep(2.5)
        looked = await asyncio.to_thread(
            subprocess.run,
            [interpreter, "-P", script, "look", name, str(home)],
            capture_output=True,
            env=environment,
            cwd=home,
            check=False,
        )
        known = looked.stdout.decode().strip().rpartition(":")[2].strip(" }") or f"failed: {looked.stderr[-200:]!r}"
        goal = Goal("≥", 4, "") if name == "holdfast" else None
        count = float(known) if known.isdigit() else 0.0
        report.add(Line(AREA, f"output and code after kill -9, {name}", f"{known} of 4", "4 of 4", count, "", goal))


def _runtimes(report: Report) -> list[tuple[str, str]]:
    found = [("holdfast", sys.executable)]
    peer = next(peer for peer in PEERS if peer.name == "hermes")
    if (problem := install(peer)) is not None:
        report.note(f"{peer.package} is left out: {problem}")
    else:
        found.append(("hermes", str(peer.interpreter)))
    return found
