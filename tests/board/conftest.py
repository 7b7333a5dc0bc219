"""A board on a home in memory."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.board.rig import BoardRig
from tests.e2e.tasks import end_commands
from tests.memory import MEMORY
from tests.rig import StoppedClock


@pytest.fixture
def home() -> Iterator[Path]:
    """A home whose commands end with the test: one that ignores SIGTERM would outlive it, with its keepers."""
    with tempfile.TemporaryDirectory(dir=MEMORY, ignore_cleanup_errors=True) as directory:  # keepers still record
        home = Path(directory) / "home"
        yield home
        end_commands(home)


@pytest.fixture
async def rig(home: Path) -> AsyncIterator[BoardRig]:
    """Nothing in it moves by itself, not even the clock."""
    board = BoardRig(home, clock=StoppedClock(1_800_000_000_000))
    yield board
    await board.close()
