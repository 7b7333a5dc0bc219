"""The embedded engine keeps the contract of every store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store.sqlite.migrate import prepare
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import USUAL, StoreTimings
from tests.memory import MEMORY
from tests.store.conformance import StoreContract
from tests.store.conformance_board import BoardContract
from tests.store.conformance_outbox import OutboxContract
from tests.store.conformance_rows import RowsContract
from tests.store.conformance_work import WorkContract

WRITERS = {"a quick disk": 1e9, "a slow disk": 0.0}
"""Who commits: the loop itself, or the writer's thread. The promises are the same."""


class SqliteEngine:
    """A file."""

    def __init__(self, path: Path, timings: StoreTimings = USUAL.store) -> None:
        self.path = path
        self._timings = timings

    async def open(self) -> SqliteStore:
        return SqliteStore(self.path, self._timings)


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        prepare(Path(name) / "empty.db")
        yield Path(name)


@pytest.fixture
def engine(directory: Path) -> Iterator[SqliteEngine]:
    """A home of its own, made by copying an empty one."""
    with tempfile.TemporaryDirectory(dir=directory) as home:
        path = Path(home) / "holdfast.db"
        shutil.copy(directory / "empty.db", path)
        yield SqliteEngine(path)


class TestSqliteStore(StoreContract):
    @pytest.fixture(params=WRITERS)
    def engine(self, engine: SqliteEngine, request: pytest.FixtureRequest) -> SqliteEngine:
        return SqliteEngine(engine.path, StoreTimings(quick_sync=WRITERS[request.param]))


class TestSqliteBoard(BoardContract): ...


class TestSqliteWork(WorkContract): ...


class TestSqliteRows(RowsContract): ...


class TestSqliteOutbox(OutboxContract): ...
