"""What notifications cost whoever writes: appends with a full outbox, and with a rule that tells of each turn."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, cast

from benchmarks.append import bursts, saying
from benchmarks.measure import OURS_SECONDS, Figure, Plan, alternate
from benchmarks.report import Goal, Report
from benchmarks.workload import Workload, fill, now, opened, rest
from holdfast.clock import SystemClock
from holdfast.domain.events import AnyEvent
from holdfast.notify.channel import NoticeMessage, Result, Sent
from holdfast.notify.destinations import Destination
from holdfast.notify.planner import Planner
from holdfast.notify.presence import Presence
from holdfast.notify_settings import USUAL_NOTICES
from holdfast.store.contract import Append, Write
from holdfast.store.outbox_store import DeliveryRow, OutboxPlan, delivery_id
from holdfast.store.sqlite.store import SqliteStore

AREA = "notify"
NOTICES = 10_000
TO = "webhooks.bench"
EVENTS_OF_A_TURN = 5


class NoChats:
    """No service in whose chats sessions are held."""

    is_on = False

    def find(self, _: str) -> None:
        """None of them."""


class Nowhere:
    """A channel, a destination and a sender: what is planned stays in the outbox."""

    reports_settled = repeatable = True
    chats = NoChats()

    def all(self) -> Mapping[str, Destination]:
        """One webhook with the usual kinds."""
        found = Destination(TO, self, frozenset(USUAL_NOTICES), when_absent=True, details=False)
        return {TO: found}

    async def send(self, _: NoticeMessage) -> Result:
        """Never called."""
        return Sent()

    async def close(self) -> None:
        """Nothing to close."""

    def wake(self) -> None:
        """Nothing is sent."""


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    work = Workload(plan.seed)
    async with opened(plan.scratch / "full") as full, opened(plan.scratch / "empty") as empty:
        await _fill_outbox(full)
        long, short = [await fill(store, work.id(8), islice(work.messages(), 10)) for store in (full, empty)]
        pairs = await alternate(_cost(saying(full, work, long)), _cost(saying(empty, work, short)), plan.rounds(80))
        name = f"an append with {NOTICES:,} notices in the outbox, beside an empty one"
        report.add(pairs.line(AREA, name, "s", Goal("≤", 1.15)))
    async with opened(plan.scratch / "ruled") as ruled, opened(plan.scratch / "bare") as bare:
        for store in (ruled, bare):
            await _fill_outbox(store)
        async with _planning(ruled) as planner:
            for name, waits in (("its append", False), ("until it is in the outbox", True)):
                ours = _turns(ruled, work, planner, waits=waits)
                pairs = await alternate(ours, _turns(bare, work, None), plan.rounds(80))
                report.add(pairs.line(AREA, f"a turn with a notification, {name}, beside none", "s"))


def _cost(append: Any) -> Figure:
    async def seconds() -> float:
        return 1 / await bursts(append)()

    return seconds


async def _fill_outbox(store: SqliteStore) -> None:
    """Notices that wait for tomorrow."""
    at = now()
    rows = tuple(_notice(number, at) for number in range(1, NOTICES + 1))
    for start in range(0, NOTICES, 1_000):
        await store.outbox.plan(OutboxPlan(0, rows[start : start + 1_000]))
    await rest(store)


def _notice(number: int, at: int) -> DeliveryRow:
    matter = f"turn/{number:016x}"
    return DeliveryRow(
        id=delivery_id(TO, matter, number, "done"),
        destination=TO,
        matter=matter,
        kind="done",
        seq=number,
        at=at,
        stream=f"session/{number:016x}",
        title="A session",
        summary="has answered",
        detail="",
        link="/",
        when_absent=True,
        due_at=at + 86_400_000,
    )


@asynccontextmanager
async def _planning(store: SqliteStore) -> AsyncIterator[Planner]:
    nowhere = cast(Any, Nowhere())
    clock = SystemClock()
    planner = Planner(store, nowhere, nowhere, presence=Presence(clock), clock=clock, mask=lambda text: text)
    await planner.start()
    try:
        yield planner
    finally:
        await planner.stop()


def _turns(store: SqliteStore, work: Workload, planner: Planner | None, *, waits: bool = False) -> Figure:
    """Seconds of a whole turn as one append while somebody plans, or until that is done as well."""
    talk: Iterator[AnyEvent] = iter(())
    stream = ""

    async def seconds() -> float:
        nonlocal talk, stream
        if not stream:
            talk = work.turns(tools=False)
            stream = await fill(store, work.id(8), islice(talk, 10 * EVENTS_OF_A_TURN))
        done, started = 0, time.perf_counter()
        while time.perf_counter() - started < OURS_SECONDS:
            await store.append(Append((Write(stream, tuple(islice(talk, EVENTS_OF_A_TURN))),), now()))
            done += 1
        taken = time.perf_counter() - started
        if planner is not None:
            await planner.plan_new()
        return (time.perf_counter() - started if waits else taken) / done

    return seconds
