"""Waiting for a moment: the machine may sleep, the clock may be set."""

from __future__ import annotations

import asyncio

from holdfast import clock
from tests.eventually import PATIENCE
from tests.rig import StoppedClock

NOW = 1_800_000_000_000


async def test_a_sleeper_notices_when_the_wall_clock_jumps_past_the_time() -> None:
    wall = StoppedClock(NOW)
    waiting = asyncio.create_task(clock.until(wall, NOW + 3_600_000, piece_ms=10))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    wall.move(3_600_000)
    async with asyncio.timeout(PATIENCE):
        await waiting


async def test_a_clock_that_is_set_back_does_not_prolong_it() -> None:
    wall = StoppedClock(NOW)
    waiting = asyncio.create_task(clock.until(wall, NOW + 100, piece_ms=10))
    await asyncio.sleep(0)
    wall.move(-3_600_000)
    async with asyncio.timeout(PATIENCE):
        await waiting


async def test_what_has_passed_is_not_waited_for() -> None:
    async with asyncio.timeout(PATIENCE):
        await clock.until(StoppedClock(NOW), NOW - 1)
