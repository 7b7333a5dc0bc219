"""The limit of minutes counts work, whatever happens to the wall clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.domain.events.session import TurnFinished
from holdfast.domain.next_step import TurnLimits
from holdfast.runtime.work_time import WorkTime
from tests.rig import StoppedClock
from tests.runtime.rig import Rig, call, only

DAY = 86_400_000
TOOLS = "\n".join(f"call {call('post', letter=letter)}" for letter in "ab")


class JumpingClock(StoppedClock):
    """Somebody sets it again and again."""

    def __init__(self, jump: int) -> None:
        super().__init__(1_800_000_000_000)
        self._jump = jump

    def now(self) -> int:
        self.move(self._jump)
        return super().now()


async def outcome(rig: Rig) -> TurnFinished:
    try:
        await rig.start()
        await rig.create(TOOLS)
        [finished] = only(await rig.rest(), TurnFinished)
        assert isinstance(finished, TurnFinished)
        return finished
    finally:
        await rig.close()


@pytest.mark.parametrize("jump", [DAY, -DAY])
async def test_a_clock_that_is_set_does_not_end_a_turn(tmp_path: Path, jump: int) -> None:
    rig = Rig(tmp_path, limits=TurnLimits(minutes=1), clock=JumpingClock(jump))
    assert (await outcome(rig)).outcome == "done"


async def test_a_clock_that_stops_or_is_set_back_does_not_prolong_a_turn(tmp_path: Path) -> None:
    rig = Rig(tmp_path, limits=TurnLimits(minutes=1), clock=JumpingClock(-DAY))
    seconds = iter(range(0, 1_000_000, 40))
    rig.runner._work_time = WorkTime(lambda: float(next(seconds)))
    finished = await outcome(rig)
    assert finished.problem is not None and finished.problem.code == "time_limit"
