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
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count, islice
from pathlib import Path

from benchmarks.measure import OURS_SECONDS, Figure, Plan, RawLog, alternate
from benchmarks.report import Goal, Line, Report
from benchmarks.workload import Workload, fill, open_store, rest
from holdfast.domain.commands import SendMessage
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.sessions import Caller, Sessions
from holdfast.store.port import CommandKey
from holdfast.store.sqlite import SqliteStore

AREA = "append"
CONVERSATIONS = 64
SHORT, LONG = 10, 10_000
COUNTED = 400
MARK = "bench: mark"


def bursts(append: Callable[[], Awaitable[object]], writers: int = 1) -> Figure:
    """Appends a second, by so many who each wait for theirs before the next."""

    async def one(until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            await append()
            done += 1
        return done

    async def burst() -> float:
        started = time.perf_counter()
        counts = await asyncio.gather(*(one(started + OURS_SECONDS) for _ in range(writers)))
        return sum(counts) / (time.perf_counter() - started)

    return burst


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    work = Workload(plan.seed)
    with contextlib.closing(RawLog(plan.scratch / "append.raw")) as raw:
        store = open_store(plan.scratch / "append")
        try:
            await _one(plan, report, store, work, raw)
            await _command(plan, report, store, work, raw)
            await _many(plan, report, store, work, raw)
        finally:
            await store.close()
    await _growth(plan, report, work)
    _counters(plan, report)


async def _one(plan: Plan, report: Report, store: SqliteStore, work: Workload, raw: RawLog) -> None:
    stream = await fill(store, work.id(8), islice(work.turns(tools=False), 100))
    pairs = await alternate(bursts(lambda: store.append(work.message(stream))), raw.burst, plan.rounds(80))
    report.add(pairs.line(AREA, "one conversation", "/s", Goal("≥", 0.5)))


async def _command(plan: Plan, report: Report, store: SqliteStore, work: Workload, raw: RawLog) -> None:
    """The same through `decide`, as the gateway does it."""
    session = work.id(8)
    await fill(store, session, islice(work.turns(tools=False), 100))
    sessions = Sessions(store, SystemClock())

    async def tell() -> None:
        caller = Caller(CommandKey(work.id(), "d" * 32), "bench")
        await sessions.tell(session, SendMessage(text=work.text()), caller)

    pairs = await alternate(bursts(tell), raw.burst, plan.rounds(40))
    report.add(pairs.line(AREA, "one conversation, the whole command", "/s"))


async def _many(plan: Plan, report: Report, store: SqliteStore, work: Workload, raw: RawLog) -> None:
    streams = [await fill(store, work.id(8), islice(work.turns(tools=False), 100)) for _ in range(CONVERSATIONS)]
    turn = count()

    async def append() -> None:
        await store.append(work.message(streams[next(turn) % CONVERSATIONS]))

    pairs = await alternate(bursts(append, CONVERSATIONS), raw.burst, plan.rounds(80))
    report.add(pairs.line(AREA, f"{CONVERSATIONS} conversations", "/s", Goal("≥", 4)))


async def _growth(plan: Plan, report: Report, work: Workload) -> None:
    """One store with a long conversation, one whose conversations are all short: each burst begins another."""
    long, short = open_store(plan.scratch / "long"), open_store(plan.scratch / "short")
    try:
        stream = await fill(long, work.id(8), islice(work.messages(), LONG))
        await rest(long)

        async def at_long() -> float:
            return 1 / await bursts(lambda: long.append(work.message(stream)))()

        async def at_short() -> float:
            begun = await fill(short, work.id(8), islice(work.messages(), SHORT))
            return 1 / await bursts(lambda: short.append(work.message(begun)))()

        pairs = await alternate(at_long, at_short, plan.rounds(80))
        report.add(pairs.line(AREA, f"at {LONG:,} messages, beside at {SHORT}", "s", Goal("≤", 1.15)))
    finally:
        await long.close()
        await short.close()


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
        [strace, "-f", "-y", "-qq", "-e", calls, "-o", trace, *child], capture_output=True, check=False
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
    found: Counter[str] = Counter()
    counting = False
    for line in trace.read_text(errors="replace").splitlines():
        if MARK in line:
            counting = not counting
        elif counting and f"/{file}" in line and (call := re.search(r" (\w+)\(.* = (\d+)$", line)):
            kind = "bytes" if "write" in call[1] else "syncs"
            found[kind] += int(call[2]) if kind == "bytes" else 1
    return found["syncs"] / COUNTED, found["bytes"] / COUNTED


async def _counted_child(home: Path, seed: int) -> None:
    store, work = open_store(home), Workload(seed)
    stream = await fill(store, work.id(8), islice(work.turns(tools=False), 1_000))
    await rest(store)
    os.write(2, MARK.encode())
    for _ in range(COUNTED):
        await store.append(work.message(stream))
    await rest(store)
    os.write(2, MARK.encode())
    await store.close()


if __name__ == "__main__":
    asyncio.run(_counted_child(Path(sys.argv[1]), int(sys.argv[2])))
