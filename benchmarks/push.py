"""How long it takes from an event in the log to its arrival at a push service, encrypted and signed."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from tests.notify.push_service import BrowserSubscription
from tests.notify.receiver import Received, Receiver, receiver
from tests.rig import GatewayRig
from tests.store.conformance import created, let_in, said, started, write

from benchmarks.measure import Pairs, Plan, alternate, shown
from benchmarks.report import Line, Report
from holdfast.clock import SystemClock
from holdfast.config import Home
from holdfast.domain.events import session_stream
from holdfast.domain.events.session import WaitOpened
from holdfast.notify.http_poster import HttpAnswer, HttpPoster
from holdfast.profiles import Profiles
from holdfast.store.device_store import PushRow

AREA = "push"
CONFIG = "[notify.push]\nallow_private = true\n"
BODY = b"x" * 400
"""About as long as a push."""


async def run(plan: Plan, report: Report) -> None:
    """All lines of this area."""
    rounds = plan.rounds(400)
    async with receiver() as service, _notified_by_push(plan, service) as rig:
        poster, numbers, arrived = HttpPoster(allow_private=True), count(), asyncio.Event()

        def answer(_: Received) -> tuple[int, str]:
            arrived.set()
            return (201, "")

        service.answer = answer
        streams = [await _waiting_session(rig, number) for number in range(rounds + 1)]

        async def event() -> float:
            """From the begin of its append to its arrival."""
            number = next(numbers)
            asked = WaitOpened(turn=1, wait=f"{number:016x}", purpose="question", reason="which one?")
            begun = time.perf_counter()
            await write(rig.store, streams[number], asked, at=_now())
            await arrived.wait()
            arrived.clear()
            return time.perf_counter() - begun

        async def bare() -> float:
            begun = time.perf_counter()
            answered = await poster.post(service.url, {}, BODY)
            assert isinstance(answered, HttpAnswer) and answered.is_ok
            arrived.clear()
            return time.perf_counter() - begun

        pairs = await alternate(event, bare, rounds)
        await poster.close()
    report.add(pairs.line(AREA, "an event reaches the push service", "s"))
    report.add(_p99(pairs))


def _p99(pairs: Pairs) -> Line:
    ours, limit = (statistics.quantiles(taken, n=100)[98] for taken in (pairs.ours, pairs.limit))
    return Line(AREA, "the same, 99th percentile", shown(ours, "s"), shown(limit, "s"), ours / limit)


@asynccontextmanager
async def _notified_by_push(plan: Plan, service: Receiver) -> AsyncIterator[GatewayRig]:
    """A gateway with one device that is told of everything at once."""
    home = Home(plan.scratch / "push")
    home.prepare()
    home.config.write_text(CONFIG)
    rig = GatewayRig(home.path, Profiles(home.config), clock=SystemClock())
    await let_in(rig.store, "d1", at=_now())
    given = BrowserSubscription.new(service.url).json
    keys = given["keys"]
    row = PushRow("d1", given["endpoint"], keys["p256dh"], keys["auth"], ["question"], False, True, _now())
    await rig.gateway.notify.push.save(row)
    await rig.gateway.notify.start()
    try:
        yield rig
    finally:
        await rig.gateway.notify.stop()
        await rig.close()


async def _waiting_session(rig: GatewayRig, number: int) -> str:
    """A session with a turn at work."""
    id = f"{number:016x}"
    await write(rig.store, session_stream(id), created(id), said(), started(1, "i"), at=_now())
    return session_stream(id)


def _now() -> int:
    return SystemClock().now()
