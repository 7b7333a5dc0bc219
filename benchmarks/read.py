"""Reading 10,000 events beside the bare SELECT of the same columns on a connection of its own."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import islice

from benchmarks.measure import Plan, alternate, timed
from benchmarks.report import Goal, Report
from benchmarks.workload import Workload, fill, opened, rest
from holdfast.config import Home
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from holdfast.gateway.streams import PAGE
from holdfast.store.sqlite.store import SqliteStore

AREA = "read"
EVENTS = 10_000
SELECT = """
SELECT e.data, e.crc FROM spans s JOIN events e ON e.span = s.span WHERE s.stream = ? ORDER BY s.number, e.version
"""


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    work = Workload(plan.seed)
    session, home = work.id(8), Home(plan.scratch / "read")
    async with opened(home.path) as store:
        stream = await fill(store, session, islice(work.turns(tools=True), EVENTS - 1))
        await rest(store)
        with closing(sqlite3.connect(home.database)) as connection:

            async def select() -> float:
                started = time.perf_counter()
                found = len(connection.execute(SELECT, (stream,)).fetchall())
                elapsed = time.perf_counter() - started
                assert found == EVENTS
                return elapsed

            async def beside(name: str, work: Callable[[], Awaitable[object]], goal: Goal | None) -> None:
                async def ours() -> float:
                    return await timed(work)

                pairs = await alternate(ours, select, plan.rounds(60))
                report.add(pairs.line(AREA, f"{EVENTS:,} events {name}", "s", goal))

            async def folded() -> None:
                fold(Session(session), await store.load(stream, after=0))

            await beside("as stored bytes", lambda: pages(store, stream), Goal("≤", 1.3))
            await beside("decoded", lambda: store.load(stream, after=0), None)
            await beside("decoded and folded", folded, Goal("≤", 3.5))


async def pages(store: SqliteStore, stream: str) -> list[bytes]:
    """Read a stream to its end, page by page as a replay does it."""
    found: list[bytes] = []
    while lines := (await store.read(stream, after=len(found), limit=PAGE)).lines:
        found += lines
    return found
