"""The engine of the stores that rigs open: SQLite, or PostgreSQL in a schema of the shared server.

A test with the fixture `each_engine` runs on both; `pytest --store postgres` runs every rig on PostgreSQL. A store that
a test makes by itself is what it says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from holdfast.config import Home
from holdfast.store.contract import Store
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import USUAL, StoreTimings
from tests.postgres_server import schemas

EngineName = Literal["sqlite", "postgres"]


class Engines:
    """Which engine it is now, and which schema belongs to which home."""

    def __init__(self) -> None:
        self.name: EngineName = "sqlite"
        self._schemas: dict[Path, Database] = {}

    def schema_of(self, home: Path) -> Database:
        """The same for every life of a home."""
        if home not in self._schemas:
            self._schemas[home] = schemas.take()
        return self._schemas[home]

    def forget(self, home: Path) -> None:
        """Its schema is free, if it had one."""
        if home in self._schemas:
            schemas.give_back(self._schemas.pop(home))

    def forget_all(self) -> None:
        for home in [*self._schemas]:
            self.forget(home)


engines = Engines()


def open_store(home: Home, timings: StoreTimings = USUAL.store) -> Store:
    """Open the store of a home, on a running loop."""
    if engines.name == "sqlite":
        return SqliteStore(home.database, timings)
    return PostgresStore(engines.schema_of(home.path), home.tasks, timings)
