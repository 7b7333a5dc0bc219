"""Connections to the database file: one that writes, others that cannot."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from holdfast.domain.errors import Corrupt, Unavailable


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


def has_text(folded: str, *texts: str) -> bool:
    """Whether one of the texts has this one in it, in either case of any alphabet: SQLite's own `lower` knows ASCII."""
    return any(folded in text.casefold() for text in texts)


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    uri = f"file:{quote(str(path))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only=ON")
    connection.create_function("has_text", -1, has_text, deterministic=True)
    connection.execute("PRAGMA busy_timeout=5000")
    return connection


def no_space(directory: Path) -> Unavailable:
    """A disk that is too full for a home to be made or upgraded; on one that needs neither, reads are served."""
    return Unavailable(
        f"The disk of {directory} is full. A new home, or the first start of a new version, needs some space.",
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
        raise Unavailable(f"{path} cannot be opened: {error}.", hint="`holdfast doctor` has details.") from error
