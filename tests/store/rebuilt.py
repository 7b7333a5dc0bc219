"""The projections as they are, and as they would be if they were made anew from the events."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from holdfast.config import Home
from holdfast.lifecycle.doctor import rebuild
from holdfast.store.tables import PROJECTIONS

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
    """What the readers see is what the log says."""
    assert rebuilt(database) == projections(database)


def check_integrity(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
