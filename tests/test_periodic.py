"""Looking again and again: woken, by itself, and in spite of trouble."""

from __future__ import annotations

import asyncio
import logging

import pytest

from holdfast.domain.errors import Unavailable
from holdfast.periodic import FollowerState, PeriodicTask
from tests.eventually import PATIENCE


async def test_trouble_and_bugs_cost_one_round(caplog: pytest.LogCaptureFixture) -> None:
    troubles: list[Exception] = [Unavailable("no disk"), OSError("no file"), KeyError("a bug")]
    enough = asyncio.Event()

    async def look() -> None:
        if troubles:
            raise troubles.pop(0)
        enough.set()

    rounds = PeriodicTask(look, name="the watchman", every=0.01)
    with caplog.at_level(logging.WARNING):
        rounds.start()
        async with asyncio.timeout(PATIENCE):
            await enough.wait()
        await rounds.stop()
    assert "the watchman failed and is retried later: no disk" in caplog.text
    assert "the watchman failed unexpectedly and is retried later" in caplog.text


def test_the_state_of_a_task_that_is_well_is_nothing_to_report() -> None:
    assert PeriodicTask(asyncio.Event().wait, name="x", every=1.0).state == FollowerState("x", "", 0, 0)


async def test_state_says_since_when_there_is_a_problem_or_none() -> None:
    troubles: list[Exception | None] = [None, Unavailable("no disk"), OSError("no file"), None]
    seen: list[tuple[str, int]] = []
    enough = asyncio.Event()

    async def look() -> None:
        seen.append((rounds.state.problem, rounds.state.since))  # of the round before
        if len(seen) > len(troubles):
            enough.set()
        elif trouble := troubles[len(seen) - 1]:
            raise trouble

    rounds = PeriodicTask(look, name="x", every=0.01)
    rounds.start()
    async with asyncio.timeout(PATIENCE):
        await enough.wait()
    await rounds.stop()
    problems, times = zip(*seen, strict=True)
    assert problems == ("", "", "no disk", "no file", "")
    assert (times[:2], times[2] == times[3]) == ((0, 0), True)
    assert 0 < times[2] < times[4]


async def test_a_task_that_is_woken_while_it_runs_runs_once_more() -> None:
    looks = 0
    inside, go = asyncio.Event(), asyncio.Event()

    async def look() -> None:
        nonlocal looks
        looks += 1
        inside.set()
        await go.wait()

    rounds = PeriodicTask(look, name="x", every=3600)
    rounds.start()
    await inside.wait()
    rounds.wake()
    go.set()
    async with asyncio.timeout(PATIENCE):
        while looks < 2:
            await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    assert looks == 2, "and not without end"
    await rounds.stop()


async def test_the_first_look_may_wait() -> None:
    async def look() -> None:
        raise AssertionError

    rounds = PeriodicTask(look, name="x", every=0.01, first=3600)
    rounds.start()
    await asyncio.sleep(0.05)
    await rounds.stop()


async def test_when_it_has_stopped_nothing_of_it_runs_any_more() -> None:
    inside, over = asyncio.Event(), False

    async def look() -> None:
        nonlocal over
        inside.set()
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            await asyncio.sleep(0.05)
            over = True

    rounds = PeriodicTask(look, name="x", every=3600)
    rounds.start()
    await inside.wait()
    await rounds.stop()
    assert over
