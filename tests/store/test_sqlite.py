"""The embedded engine keeps the contract of every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.store.sqlite import SqliteStore
from tests.store.conformance import StoreContract


class SqliteEngine:
    """A file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def open(self) -> SqliteStore:
        return SqliteStore(self.path)


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def engine(self, tmp_path: Path) -> SqliteEngine:
        return SqliteEngine(tmp_path / "holdfast.db")
