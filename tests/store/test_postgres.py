"""The engine on PostgreSQL keeps the contract of every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.store import PostgresStore, open_store
from holdfast.timings import USUAL, StoreTimings
from tests.postgres_server import new_schema, shared_server
from tests.store.conformance import StoreContract
from tests.store.conformance_board import BoardContract
from tests.store.conformance_outbox import OutboxContract
from tests.store.conformance_rows import RowsContract
from tests.store.conformance_work import WorkContract


class PostgresEngine:
    """A schema."""

    def __init__(self, outputs: Path, timings: StoreTimings = USUAL.store) -> None:
        self.database = Database(shared_server().url(), new_schema())
        self._outputs = outputs
        self._timings = timings

    async def open(self) -> PostgresStore:
        return await open_store(self.database, self._outputs, self._timings)

    def remove(self) -> None:
        shared_server().sql(f"DROP SCHEMA IF EXISTS {self.database.schema} CASCADE")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[PostgresEngine]:
    """A schema of its own."""
    engine = PostgresEngine(tmp_path)
    yield engine
    engine.remove()


class TestPostgresStore(StoreContract): ...


class TestPostgresBoard(BoardContract): ...


class TestPostgresWork(WorkContract): ...


class TestPostgresRows(RowsContract): ...


class TestPostgresOutbox(OutboxContract): ...
