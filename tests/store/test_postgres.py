"""The engine on PostgreSQL keeps the contract of every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.store import PostgresStore
from tests.postgres_server import schemas
from tests.store.conformance import StoreContract
from tests.store.conformance_board import BoardContract
from tests.store.conformance_outbox import OutboxContract
from tests.store.conformance_rows import RowsContract
from tests.store.conformance_work import WorkContract


class PostgresEngine:
    """A schema that is prepared."""

    def __init__(self, database: Database, outputs: Path) -> None:
        self.database = database
        self._outputs = outputs

    async def open(self) -> PostgresStore:
        store = PostgresStore(self.database, self._outputs)
        await store.announce()
        return store


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[PostgresEngine]:
    """A schema of its own."""
    database = schemas.take()
    yield PostgresEngine(database, tmp_path)
    schemas.give_back(database)


class TestPostgresStore(StoreContract): ...


class TestPostgresBoard(BoardContract): ...


class TestPostgresWork(WorkContract): ...


class TestPostgresRows(RowsContract): ...


class TestPostgresOutbox(OutboxContract): ...
