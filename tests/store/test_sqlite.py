"""The embedded engine keeps the contract of every store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store.sqlite import writer
from holdfast.store.sqlite.migrate import prepare
from holdfast.store.sqlite.store import SqliteStore
from tests.memory import MEMORY
from tests.store.conformance import StoreContract
from tests.store.conformance_board import BoardContract
from tests.store.conformance_rows import RowsContract
from tests.store.conformance_work import WorkContract

WRITERS = {"a quick disk": 1e9, "a slow disk": 0.0}
"""Who commits: the loop itself, or the writer's thread. The promises are the same."""


class SqliteEngine:
    """A file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def open(self) -> SqliteStore:
        return SqliteStore(self.path)


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
    def engine(
        self, engine: SqliteEngine, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> SqliteEngine:
        monkeypatch.setattr(writer, "QUICK", WRITERS[request.param])
        return engine


class TestSqliteBoard(BoardContract): ...


class TestSqliteWork(WorkContract): ...


class TestSqliteRows(RowsContract): ...
