"""Durable appends beside one write and one fdatasync for each message."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path

from tests.actors import person

from benchmarks.measure import OURS_SECONDS, Figure, Plan, RawLog, alternate
from benchmarks.report import Goal, Line, Report
from benchmarks.workload import Workload, fill, opened, rest
from holdfast.clock import SystemClock
from holdfast.domain.commands import SendMessage
from holdfast.sessions import Caller, Sessions
from holdfast.store.contract import CommandKey, Store
from holdfast.store.sqlite.store import SqliteStore

AREA = "append"
CONVERSATIONS = 64
SHORT, LONG = 10, 10_000
COUNTED = 400
MARK = "bench: mark"


def bursts(*appends: Callable[[], Awaitable[object]]) -> Figure:
    """Appends a second, by conversations of which each waits for its own before the next."""

    async def one(append: Callable[[], Awaitable[object]], until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            await append()
            done += 1
        return done

    async def burst() -> float:
        started = time.perf_counter()
        counts = await asyncio.gather(*(one(append, started + OURS_SECONDS) for append in appends))
        return sum(counts) / (time.perf_counter() - started)

    return burst


def saying(store: Store, work: Workload, stream: str) -> Callable[[], Awaitable[object]]:
    """One more message to this session."""
    return lambda: store.append(work.message(stream))


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    work = Workload(plan.seed)
    with contextlib.closing(RawLog(plan.scratch / "append.raw")) as raw:
        async with opened(plan.scratch / "append") as store:
            await _one(plan, report, store, work, raw)
            await _command(plan, report, store, work, raw)
            await _many(plan, report, store, work, raw)
    await _growth(plan, report, work)
    _counters(plan, report)


async def _one(plan: Plan, report: Report, store: SqliteStore, work: Workload, raw: RawLog) -> None:
    stream = await fill(store, work.id(8), islice(work.turns(tools=False), 100))
    pairs = await alternate(bursts(saying(store, work, stream)), raw.burst, plan.rounds(80))
    report.add(pairs.line(AREA, "one conversation", "/s", Goal("≥", 0.5)))


async def _command(plan: Plan, report: Report, store: SqliteStore, work: Workload, raw: RawLog) -> None:
    """The same through `decide`, as the gateway does it."""
    session = work.id(8)
    await fill(store, session, islice(work.turns(tools=False), 100))
    sessions = Sessions(store, SystemClock())

    async def tell() -> None:
        caller = Caller(CommandKey(f"{SystemClock().now():011x}{work.id()}", "d" * 32), person("bench"))
        await sessions.execute(session, SendMessage(text=work.text()), caller)

    pairs = await alternate(bursts(tell), raw.burst, plan.rounds(40))
    report.add(pairs.line(AREA, "one conversation, the whole command", "/s"))


async def _many(plan: Plan, report: Report, store: SqliteStore, work: Workload, raw: RawLog) -> None:
    streams = [await fill(store, work.id(8), islice(work.turns(tools=False), 100)) for _ in range(CONVERSATIONS)]
    pairs = await alternate(bursts(*(saying(store, work, stream) for stream in streams)), raw.burst, plan.rounds(80))
    report.add(pairs.line(AREA, f"{CONVERSATIONS} conversations", "/s", Goal("≥", 4)))


async def _growth(plan: Plan, report: Report, work: Workload) -> None:
    """One store with a long conversation, one whose conversations are all short: each burst begins another."""
    async with opened(plan.scratch / "long") as long, opened(plan.scratch / "short") as short:
        stream = await fill(long, work.id(8), islice(work.messages(), LONG))
        await rest(long)

        async def at_long() -> float:
            return 1 / await bursts(saying(long, work, stream))()

        async def at_short() -> float:
            begun = await fill(short, work.id(8), islice(work.messages(), SHORT))
            return 1 / await bursts(saying(short, work, begun))()

        pairs = await alternate(at_long, at_short, plan.rounds(80))
        report.add(pairs.line(AREA, f"at {LONG:,} messages, beside at {SHORT}", "s", Goal("≤", 1.15)))


# --- counters: no noise in these ------------------------------------------------------------------


def _counters(plan: Plan, report: Report) -> None:
    """Appends of a child, looked at by strace: how many syncs and how many bytes one message takes."""
    strace = shutil.which("strace")
    if strace is None:
        report.note("append: syncs and bytes for each message are not counted, since there is no strace here.")
        return
    trace, home = plan.scratch / "append.strace", plan.scratch / "counted"
    calls = "trace=fsync,fdatasync,write,pwrite64"
    child = [sys.executable, "-m", "benchmarks.append", str(home), str(plan.seed)]
    done = subprocess.run(
        [strace, "-f", "-y", "-qq", "-s", "16", "-e", calls, "-o", trace, *child], capture_output=True, check=False
    )
    if done.returncode:
        report.note(f"append: strace could not look at the child: {done.stderr.decode(errors='replace')[-200:]}")
        return
    for what, file in (("the log", "holdfast.db"), ("the search index", "search.db")):
        syncs, written = _counted(trace, file)
        report.add(Line(AREA, f"syncs a message, {what}", f"{syncs:.2f}", "1.00", syncs))
        ratio = written / 512
        report.add(Line(AREA, f"bytes a message, {what}", f"{written / 1000:.1f} kB", "0.5 kB", ratio))


def _counted(trace: Path, file: str) -> tuple[float, float]:
    """Calls as they begin: one that another thread interrupts ends on a line that names no file."""
    syncs = size = 0
    counting = False
    for line in trace.read_text(errors="replace").splitlines():
        if MARK in line:
            counting = not counting
        elif counting and f"/{file}" in line:
            written = re.search(r'"(?:\.{3})?, (\d+)(?:, \d+)?(?:\) = | <unfinished)', line)
            size += int(written[1]) if written else 0
            syncs += "sync(" in line
    return syncs / COUNTED, size / COUNTED


async def _counted_child(home: Path, seed: int) -> None:
    work = Workload(seed)
    async with opened(home) as store:
        stream = await fill(store, work.id(8), islice(work.turns(tools=False), 1_000))
        await rest(store)
        os.write(2, MARK.encode())
        for _ in range(COUNTED):
            await store.append(work.message(stream))
        await rest(store)
        os.write(2, MARK.encode())


if __name__ == "__main__":
    asyncio.run(_counted_child(Path(sys.argv[1]), int(sys.argv[2])))
