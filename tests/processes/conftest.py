"""A house for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast.timings import USUAL
from tests.processes.house import House


@pytest_asyncio.fixture
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """With the `TIMINGS` of its module, if it has some."""
    house = House(tmp_path, timings=getattr(request.module, "TIMINGS", USUAL.processes))
    yield house
    await house.close()
