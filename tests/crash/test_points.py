"""A crash, a doubt and a refusal at every single write of scripted turns; in the gate at every second or third one.

The points are found by counting the writes of the store, so a write that somebody adds to the loop
tomorrow is a point tomorrow.
"""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

import pytest

from tests.crash.harness import SCENARIOS, Scenario, at_every_write
from tests.runtime.mortal import Fault, How

EACH = pytest.param(1, marks=pytest.mark.proof)


@pytest.mark.parametrize("every", [2, EACH])
@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_promise_1_a_crash_before_or_after_any_write_loses_nothing(
    scenario: Scenario, how: How, every: int, homes: Path
) -> None:
    points = await at_every_write(scenario, how, homes, every=every)
    print(f"{scenario}: {points} points")
    assert points >= 3 // every


@pytest.mark.parametrize("every", [3, EACH])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_promise_1_a_write_in_doubt_is_not_written_twice(scenario: Scenario, every: int, homes: Path) -> None:
    assert await at_every_write(scenario, "doubt", homes, every=every) >= 3 // every


@pytest.mark.parametrize("every", [3, EACH])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_a_write_that_the_disk_refused_once_is_made_good(scenario: Scenario, every: int, homes: Path) -> None:
    assert await at_every_write(scenario, "refuse", homes, every=every) >= 3 // every


@pytest.mark.proof
@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_promise_1_a_second_crash_while_recovering_loses_nothing(
    scenario: Scenario, how: How, homes: Path
) -> None:
    """Every pair of points."""
    pairs = 0
    for at in count(1):
        here = homes / str(at)
        here.mkdir()
        found = await at_every_write(scenario, how, here, Fault(at, how))
        if found == 0:
            break
        pairs += found
        shutil.rmtree(here)
    print(f"{scenario}, twice {how}: {pairs} pairs of points")
    assert pairs >= 6
