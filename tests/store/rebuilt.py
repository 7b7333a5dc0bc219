"""The projections as they are, and as they would be if they were made anew from the events."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg

from holdfast.config import Home
from holdfast.lifecycle.doctor import rebuild
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.rebuild import rebuild_projections
from holdfast.store.tables import PROJECTIONS
from tests.engines import engines
from tests.postgres_server import schemas

COUNTS = """
SELECT name, value FROM {0}.counters WHERE name ~ '^(sessions|messages|events/|tasks/|bytes/)' AND value <> 0 ORDER BY 1
"""
Tables = dict[str, list[tuple[object, ...]]]


def projections(database: Path) -> Tables:
    with closing(sqlite3.connect(database)) as db:
        return {table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in PROJECTIONS}


def rebuilt(database: Path) -> Tables:
    """`doctor --rebuild` of a copy, made with the backup API."""
    with tempfile.TemporaryDirectory(dir=database.parent) as directory:
        home = Home(Path(directory) / "home")
        home.prepare()
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(home.database)) as copy:
            source.backup(copy)
            for table in PROJECTIONS:
                copy.execute(f"DELETE FROM {table}")
            copy.commit()
        rebuild(home)
        return projections(home.database)


def check_projections(database: Path) -> None:
    """What the readers see is what the log says, on the engine of the rigs."""
    if engines.name == "postgres":
        check_postgres_projections(engines.schema_of(database.parent))
    else:
        assert rebuilt(database) == projections(database)


def check_postgres_projections(database: Database) -> None:
    """The same in a schema of PostgreSQL: a copy of its log is projected anew."""
    copy = schemas.take()
    with psycopg.connect(database.url) as db:
        for table in ("events", "spans"):
            db.execute(f"INSERT INTO {copy.schema}.{table} SELECT * FROM {database.schema}.{table}".encode())
        db.commit()
        with ThreadPoolExecutor(1) as thread:  # a loop may run in this one
            thread.submit(asyncio.run, rebuild_projections(copy)).result()
        for table in PROJECTIONS:
            asked = [f"SELECT * FROM {where.schema}.{table} ORDER BY 1, 2".encode() for where in (database, copy)]
            assert db.execute(asked[0]).fetchall() == db.execute(asked[1]).fetchall(), table
        kept, anew = (db.execute(COUNTS.format(where.schema).encode()).fetchall() for where in (database, copy))
        assert kept == anew, "the counts that triggers keep"
    schemas.give_back(copy)


def check_integrity(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
