"""The daily list of stale commands: what it names, and how often it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.commands import ArchiveSession
from holdfast.domain.errors import Unavailable
from holdfast.domain.events import SYSTEM
from holdfast.domain.events.system import StaleListed
from holdfast.store.contract import Append
from holdfast.timings import ProcessTimings, TaskTimings, Timings
from tests.eventually import eventually
from tests.lifecycle.house import DAY, HOUR, House
from tests.rig import StoppedClock

NOON = 1_700_000_000_000
WATCHFUL = Timings(tasks=TaskTimings(sample_age=0.0), processes=ProcessTimings(recent=0.1))
TASK, OTHER = "ab" * 8, "cd" * 8
SERVER = """exec python3 -c 'import socket, time; s = socket.create_server(("127.0.0.1", 0)); time.sleep(600)'"""


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = await House(tmp_path, clock=StoppedClock(NOON), timings=WATCHFUL).start()
    yield house
    await house.end_all()
    await house.close()


async def listed(house: House) -> list[StaleListed]:
    records = await house.store.load(SYSTEM, after=0)
    return [record.event for record in records if isinstance(record.event, StaleListed)]


async def with_server(house: House) -> None:
    """A server that nobody uses outlives its session, and a command that a person started does not count."""
    await house.create("say hello")
    await house.rest()
    await house.background(SERVER, task=TASK, lifetime="persist")
    await house.background(SERVER, task=OTHER, lifetime="persist", session="")
    await house.tell(ArchiveSession(), "archive")

    async def is_stale() -> bool:
        return [view.id for view in await house.task_queries.running() if view.stale] == [TASK]

    await eventually(is_stale)


async def test_promise_5_stale_commands_are_listed_once_a_day(house: House) -> None:
    report = house.gateway.stale_report
    await with_server(house)
    assert not await report.run_once(), "not because a gateway was started"
    house.move_clock(DAY)
    assert await report.run_once()
    house.move_clock(HOUR)
    assert not await report.run_once(), "once a day"
    house.move_clock(DAY)
    assert await report.run_once()
    first, second = await listed(house)
    assert first == second == StaleListed(tasks=[TASK], reasons=["serving not in use, and its session is archived"])


async def test_nothing_is_written_while_nothing_is_stale(house: House) -> None:
    report = house.gateway.stale_report
    for _ in range(3):
        assert not await report.run_once()
        house.move_clock(DAY)
    assert await listed(house) == []


async def test_a_list_that_the_disk_refused_is_written_later(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    report = house.gateway.stale_report
    await with_server(house)
    await report.run_once()
    house.move_clock(DAY)

    async def refused(append: Append) -> None:
        raise Unavailable("no space")

    with monkeypatch.context() as patched:
        patched.setattr(house.store, "append", refused)
        with pytest.raises(Unavailable):
            await report.run_once()
    assert await report.run_once()
    assert len(await listed(house)) == 1


async def test_it_runs_by_itself_from_start_to_stop(house: House) -> None:
    report = house.gateway.stale_report
    await with_server(house)
    await report.run_once()
    house.move_clock(DAY)
    report.start()

    async def once() -> bool:
        return len(await listed(house)) == 1

    await eventually(once)
    await report.stop()
