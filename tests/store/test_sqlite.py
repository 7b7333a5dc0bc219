"""The embedded engine keeps the contract of every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.store import writer
from holdfast.store.sqlite import SqliteStore
from tests.store.conformance import StoreContract

WRITERS = {"a quick disk": 1e9, "a slow disk": 0.0}
"""Who commits: the loop itself, or the writer's thread. The promises are the same."""


class SqliteEngine:
    """A file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def open(self) -> SqliteStore:
        return SqliteStore(self.path)


class TestSqliteStore(StoreContract):
    @pytest.fixture(params=WRITERS)
    def engine(self, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SqliteEngine:
        monkeypatch.setattr(writer, "QUICK", WRITERS[request.param])
        return SqliteEngine(tmp_path / "holdfast.db")
