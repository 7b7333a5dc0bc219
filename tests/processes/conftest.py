"""A rig for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast.timings import USUAL
from tests.processes.rig import LAUNCHER, ProcessRig


@pytest_asyncio.fixture
async def rig(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[ProcessRig]:
    """With the `TIMINGS` of its module, if it has some."""
    rig = ProcessRig(tmp_path, timings=getattr(request.module, "TIMINGS", USUAL.processes))
    yield rig
    await rig.close()


@pytest.fixture(scope="session", autouse=True)
def launcher_of_rigs() -> Iterator[None]:
    """Its server ends with the tests, also where the process that runs them then looks for what they left running."""
    yield
    LAUNCHER.close()
