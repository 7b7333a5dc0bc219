"""A house for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast.timings import USUAL
from tests.processes.house import LAUNCHER, House


@pytest_asyncio.fixture
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """With the `TIMINGS` of its module, if it has some."""
    house = House(tmp_path, timings=getattr(request.module, "TIMINGS", USUAL.processes))
    yield house
    await house.close()


@pytest.fixture(scope="session", autouse=True)
def launcher_of_houses() -> Iterator[None]:
    """Its server ends with the tests, also where the process that runs them then looks for what they left running."""
    yield
    LAUNCHER.close()
