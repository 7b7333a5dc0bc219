"""Where the crash tests live."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory import MEMORY


@pytest.fixture
def homes() -> Iterator[Path]:
    """Room for many homes."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory)
