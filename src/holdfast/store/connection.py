"""Connections to the database file, and its schema: how it is opened, prepared and migrated."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from holdfast.domain.errors import Corrupt, Rejected, Unavailable
from holdfast.store.migrations.event_shapes import new_shape
from holdfast.store.migrations.rewrite_events import rewrite_events
from holdfast.store.queries import migrations
from holdfast.store.rebuild import rebuild_projections

log = logging.getLogger(__name__)
READERS = 3
EVENT_SHAPES = 8
"""The migration that is preceded by a rewriting of the events."""
T = TypeVar("T")


def connect_writer(path: Path) -> sqlite3.Connection:
    """The writing connection; it alone checkpoints, which avoids the WAL-reset bug of old SQLite."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    for pragma in (
        "busy_timeout=5000",
        "synchronous=FULL",
        "foreign_keys=ON",
        "journal_size_limit=67108864",
        "cell_size_check=ON",
        "wal_autocheckpoint=4000",
        "temp_store=MEMORY",
        "trusted_schema=OFF",
        "fullfsync=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def connect_impatient_writer(path: Path) -> sqlite3.Connection:
    """The writing connection for the event loop: where another program holds the lock it fails at once."""
    connection = connect_writer(path)
    connection.execute("PRAGMA busy_timeout=0")
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    uri = f"file:{quote(str(path))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only=ON")
    connection.create_function("folded", 1, str.casefold, deterministic=True)  # SQLite's own knows ASCII only
    connection.execute("PRAGMA busy_timeout=5000")
    return connection


def prepare(path: Path) -> None:
    """Create or migrate the database; refuse one from a newer version."""
    with explained(path):
        if path.exists() and _is_current(path):  # nothing is written: the disk may be full
            return
        with closing(connect_writer(path)) as connection:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode=WAL")
            migrate(connection)
            if _must_rebuild(connection):
                log.info("the lists are made anew from the stored events")
                rebuild_projections(connection)


def _is_current(path: Path) -> bool:
    """Whether it needs no migration. One whose creation was cut has a journal that only a writer can roll back."""
    with closing(connect_reader(path)) as connection:
        try:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        except sqlite3.OperationalError:
            return False
        if version != migrations()[-1][0] or _must_rebuild(connection):
            return False
        return bool(connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


def _must_rebuild(connection: sqlite3.Connection) -> bool:
    """Whether a migration wants the projections made anew, which only the code of this version can do."""
    return connection.execute("SELECT 1 FROM counters WHERE name = 'rebuild_projections'").fetchone() is not None


def no_space(directory: Path) -> Unavailable:
    """A disk that is too full for a home to be made or upgraded; on one that needs neither, reads are served."""
    return Unavailable(
        f"The disk that holds {directory} is full: a new home, or the first start of a new version, needs some space.",
        hint="Nothing was lost. Free some space, then start the gateway again.",
    )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say in our own words why a database cannot be opened."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise no_space(path.parent) from error
        if "not a database" in str(error) or "malformed" in str(error):
            raise Corrupt(f"{path} is damaged: {error}.", hint="Move it aside and restore a backup.") from error
        raise Unavailable(f"{path} cannot be opened: {error}.", hint="`holdfast doctor` says more.") from error


def migrate(connection: sqlite3.Connection) -> None:
    """Run the migrations that are missing, each in a transaction of its own."""
    known = migrations()
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > known[-1][0]:
        raise Rejected(
            f"This database was written by a newer Holdfast (schema {version}, this one knows {known[-1][0]}).",
            hint="Upgrade Holdfast; nothing was changed.",
        )
    for number, _, statements in known:
        if number > version:
            if number == EVENT_SHAPES:
                rewrite_events(connection, new_shape, progress="events_rewritten")
            connection.executescript(f"BEGIN IMMEDIATE;\n{statements}\nPRAGMA user_version={number};\nCOMMIT;")
