"""What a gateway weighs, and how soon it answers."""

from __future__ import annotations

import statistics
import time
from itertools import islice

from benchmarks.children import gateway, megabytes, python, upgrade
from benchmarks.measure import Plan
from benchmarks.report import Goal, Line, Report
from benchmarks.workload import Workload, fill, opened, rest
from holdfast.config import Home

AREA = "gateway"
SESSIONS = FOLLOWERS = 1_000
SETTLE_SECONDS = 1.5


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    home, work = Home(plan.scratch / "gateway"), Workload(plan.seed)
    async with opened(home.path) as store:
        sessions = [work.id(8) for _ in range(SESSIONS)]
        for session in sessions:
            await fill(store, session, islice(work.turns(tools=True), 9))
        await rest(store)
    starts: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        with gateway(home):
            starts.append(time.perf_counter() - started)
    middle = statistics.median(starts)
    spread = f"{min(starts):.2f} … {max(starts):.2f}"
    report.add(
        Line(AREA, "start to the first answer", f"{middle * 1000:.0f} ms", "", middle, " s", Goal("≤", 2, " s"), spread)
    )
    with gateway(home) as (pid, port), python("reader") as reader:
        token = home.token.read_text().strip()

        def follow(session: str) -> None:
            path = f"/v1/sessions/{session}/events?after=10"
            reader.ask(open=1, port=port, request=upgrade(port, token, path))

        follow(sessions[0])  # what the first one of all costs belongs to the gateway
        time.sleep(SETTLE_SECONDS)
        idle = megabytes(pid)
        goal = Goal("≤", 120, " MB")
        report.add(Line(AREA, f"idle with {SESSIONS:,} sessions", f"{idle:.0f} MB", "", idle, " MB", goal))
        for session in sessions:
            follow(session)
        time.sleep(SETTLE_SECONDS)
        more = megabytes(pid) - idle
        goal = Goal("≤", 40, " MB")
        report.add(Line(AREA, f"{FOLLOWERS:,} followers more", f"{more:.1f} MB", "", more, " MB", goal))
