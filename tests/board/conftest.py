"""A board on a home in memory."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.board.rig import BoardRig
from tests.memory import MEMORY
from tests.rig import StoppedClock


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory) / "home"


@pytest.fixture
async def rig(home: Path) -> AsyncIterator[BoardRig]:
    """Nothing in it moves by itself, not even the clock."""
    board = BoardRig(home, clock=StoppedClock(1_800_000_000_000))
    yield board
    await board.close()
