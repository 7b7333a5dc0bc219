"""Commands under a keeper beside the bare thing: `CMD > file`, `Popen`, and task-spooler where it is installed."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.measure import Figure, Pairs, Plan, alternate
from benchmarks.report import Goal, Line, Report
from holdfast.processes.command import HEAD_BYTES, TAIL_BYTES, CommandSpec, Ended, Running
from holdfast.processes.spool import Spool
from holdfast.processes.supervisor import Limits, Supervisor

AREA = "processes"
MB = 1_000_000
ENV = {"PATH": os.environ["PATH"]}
SPOOLER = "tsp"
TREE = """
import os, sys, time
for number in range(200):
    if os.fork() == 0:
        os.setsid()
        os.execve("/bin/sleep", ["sleep", "1000"], {} if number % 2 else dict(os.environ))
print("ready", flush=True)
time.sleep(1000)
"""


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    async with supervised(plan.scratch / "tasks") as supervisor:
        await throughput(supervisor, plan, report)
        await flood(supervisor, plan, report)
        await short(supervisor, plan, report)
        await spooler(supervisor, plan, report)
        await tree(supervisor, plan, report)
        await many(supervisor, plan, report)


@asynccontextmanager
async def supervised(root: Path) -> AsyncIterator[Supervisor]:
    """A supervisor whose commands end with the benchmark."""
    supervisor = Supervisor(root, Limits(live=1_000))
    try:
        yield supervisor
    finally:
        for id in supervisor.live():
            await supervisor.kill(id, grace=0)
            await supervisor.wait(id)
        await supervisor.close()


async def begin(supervisor: Supervisor, *argv: str, tail: int | None = TAIL_BYTES) -> Running:
    return await supervisor.start(CommandSpec(id=secrets.token_hex(8), run=argv, cwd=Path("/"), env=ENV, tail=tail))


async def completed(supervisor: Supervisor, *argv: str) -> float:
    """Seconds from the start to the recorded end."""
    started = time.perf_counter()
    return await ended(supervisor, await begin(supervisor, *argv), started)


async def ended(supervisor: Supervisor, running: Running, since: float) -> float:
    """Seconds until the end is recorded."""
    outcome = await supervisor.wait(running.id)
    elapsed = time.perf_counter() - since
    assert isinstance(outcome, Ended)
    assert outcome.status == 0
    await supervisor.remove(running.id)
    return elapsed


async def throughput(supervisor: Supervisor, plan: Plan, report: Report) -> None:
    """The command holds its output itself, so that keeping it costs nothing; dropping the middle does."""
    size, file = 1_000 * MB, plan.scratch / "bare"

    def ours(tail: int | None) -> Figure:
        async def figure() -> float:
            running = await begin(supervisor, "head", "-c", str(size), "/dev/zero", tail=tail)
            return size / MB / await ended(supervisor, running, time.perf_counter())

        return figure

    async def bare() -> float:
        started = time.perf_counter()
        with file.open("wb") as out:
            subprocess.run(["head", "-c", str(size), "/dev/zero"], stdout=out, check=True)
        elapsed = time.perf_counter() - started
        file.unlink()
        return size / MB / elapsed

    for name, tail in (("kept whole", None), ("of which the middle is dropped", TAIL_BYTES)):
        pairs = await alternate(ours(tail), bare, plan.rounds(8))
        report.add(pairs.line(AREA, f"1 GB of output {name}, beside CMD > file", "MB/s", Goal("≥", 0.9)))


async def flood(supervisor: Supervisor, plan: Plan, report: Report) -> None:
    """How much of a long output is ever on disk."""
    gigabytes = 4 if plan.quick else 20
    running = await begin(supervisor, "head", "-c", str(gigabytes * 1_000 * MB), "/dev/zero")
    output, peak, started = supervisor.output(running.id), 0, time.perf_counter()
    while running.id in supervisor.live():
        peak = max(peak, output.on_disk())
        await asyncio.sleep(0.005)
    rate = gigabytes / (time.perf_counter() - started)
    cap = (HEAD_BYTES + 2 * TAIL_BYTES) / MB
    report.add(
        Line(
            area=AREA,
            name=f"{gigabytes} GB of output, most on disk above the cap of {cap:.0f} MB",
            ours=f"{peak / MB:.0f} MB",
            limit=f"{rate:.1f} GB/s",
            measured=max(0.0, peak / MB - cap),
            unit=" MB",
            goal=Goal("≤", 150, " MB"),
        )
    )
    await supervisor.remove(running.id)


async def short(supervisor: Supervisor, plan: Plan, report: Report) -> None:
    """What durability costs a command that does nothing: until it has begun, until its end, and 50 at once."""
    begun = list[float]()

    async def ours() -> float:
        started = time.perf_counter()
        running = await begin(supervisor, "true")
        begun.append(time.perf_counter() - started)
        return await ended(supervisor, running, started)

    await ours()  # starts the keeper server
    pairs = await alternate(ours, plain, plan.rounds(60))
    report.add(pairs.line(AREA, "true, from its start to its recorded end, beside Popen", "s", Goal("≤", 20)))
    report.add(seconds("true, until it has begun", begun, Goal("≤", 0.02, " s")))
    bursts = list[float]()
    for _ in range(plan.rounds(8)):
        started = time.perf_counter()
        await asyncio.gather(*(completed(supervisor, "true") for _ in range(50)))
        bursts.append(time.perf_counter() - started)
    report.add(seconds("50 times true at once, until all have ended", bursts, Goal("≤", 0.6, " s")))


def seconds(name: str, figures: list[float], goal: Goal) -> Line:
    """The median of some durations, with the least and the most."""
    figures.sort()
    middle = figures[len(figures) // 2]
    spread = f"{figures[0]:.3f} … {figures[-1]:.3f}"
    return Line(AREA, name, f"{middle * 1000:.1f} ms", "", middle, " s", goal, spread)


async def plain() -> float:
    started = time.perf_counter()
    subprocess.run(["true"], check=True)
    return time.perf_counter() - started


async def spooler(supervisor: Supervisor, plan: Plan, report: Report) -> None:
    """A peer that keeps commands beyond the terminal, through one server for all of them."""
    if shutil.which(SPOOLER) is None:
        report.note("task-spooler is not installed (apt-get install task-spooler)")
        return
    env = ENV | {"TS_SOCKET": str(plan.scratch / "ts"), "TMPDIR": str(plan.scratch)}

    async def theirs() -> float:
        started = time.perf_counter()
        subprocess.run([SPOOLER, "-f", "true"], env=env, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started

    async def ours() -> float:
        return await completed(supervisor, "true")

    try:
        pairs: Pairs = await alternate(ours, theirs, plan.rounds(40))
    finally:
        subprocess.run([SPOOLER, "-K"], env=env, check=False)
    report.add(pairs.line(AREA, "true, beside task-spooler -f", "s"))


async def tree(supervisor: Supervisor, plan: Plan, report: Report) -> None:
    """200 daemons, each in a session of its own, half of them without environment."""
    figures, left = list[float](), 0
    for _ in range(plan.rounds(8)):
        running = await begin(supervisor, sys.executable, "-c", TREE)
        async for window in supervisor.follow(running.id, 0):
            if b"ready" in window.data:
                break
        started = time.perf_counter()
        done = await supervisor.kill(running.id, grace=0)
        figures.append(time.perf_counter() - started)
        left += len(done.survivors)
        await supervisor.wait(running.id)
    report.add(seconds(f"killing 200 daemons, {left} left", figures, Goal("≤", 1, " s")))


async def many(supervisor: Supervisor, plan: Plan, report: Report) -> None:
    """Memory, idle CPU and finding them again, with many that sleep."""
    await asyncio.gather(*(begin(supervisor, "sleep", "1000") for _ in range(100)))
    claims = {id: claim for id in supervisor.live() if (claim := Spool(plan.scratch / "tasks", id).claim()) is not None}
    keepers = [keeper.pid for claim in claims.values() for keeper in claim.keepers]
    pss = sum(map(proportional, keepers)) / len(claims) / 1024
    report.add(
        Line(AREA, "memory of the keepers of one command", f"{pss:.1f} MB", "", pss, " MB", Goal("≤", 2.5, " MB"))
    )
    await asyncio.sleep(2)
    seconds = 4 if plan.quick else 20
    before = sum(map(on_cpu, [*keepers, os.getpid()]))
    await asyncio.sleep(seconds)
    share = (sum(map(on_cpu, [*keepers, os.getpid()])) - before) / seconds * 100
    report.add(Line(AREA, "100 idle commands, of one core", f"{share:.2f} %", "", share, " %", Goal("≤", 1, " %")))
    count = 100 if plan.quick else 400
    for _ in range((count - 100) // 20):
        await asyncio.gather(*(begin(supervisor, "sleep", "1000") for _ in range(20)))
    ids = supervisor.live()
    another = Supervisor(plan.scratch / "tasks", Limits(live=1_000))
    started = time.perf_counter()
    found = await asyncio.gather(*(another.attach(id) for id in ids))
    elapsed = time.perf_counter() - started
    assert all(isinstance(one, Running) for one in found)
    await another.close()
    report.add(
        Line(
            AREA,
            f"finding {len(ids)} live commands again",
            f"{elapsed * 1000:.0f} ms",
            "",
            elapsed,
            " s",
            Goal("≤", 1, " s"),
        )
    )


def proportional(pid: int) -> int:
    """The memory of a process in kB, with its share of what it shares."""
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def on_cpu(pid: int) -> float:
    """Seconds that a process has run."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
