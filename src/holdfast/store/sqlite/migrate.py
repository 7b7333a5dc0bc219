"""Prepares a database: creates it, or brings one of an older version to the schema of this one."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast.domain.errors import Rejected
from holdfast.domain.events import location
from holdfast.store.projection import project
from holdfast.store.replay import Replay
from holdfast.store.sqlite.connections import connect_reader, connect_writer, explained
from holdfast.store.sqlite.log_reads import checked
from holdfast.store.sqlite.migrations.card_numbers import number_cards
from holdfast.store.sqlite.migrations.event_shapes import new_shape
from holdfast.store.sqlite.migrations.rewrite_events import rewrite_events
from holdfast.store.sqlite.projected_rows import RememberedRows, SqliteRows
from holdfast.store.sqlite.queries import migrations, schema
from holdfast.store.tables import PROJECTIONS

log = logging.getLogger(__name__)
EVENT_SHAPES, CARD_NUMBERS = 8, 14
"""The migrations that are preceded by a rewriting of events."""


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
                log.info("rebuilding the projections from the stored events")
                rebuild_projections(connection)


def rebuild_database(path: Path) -> tuple[int, set[str]]:
    """Rebuild the projections of a database. The caller holds the home lock."""
    prepare(path)
    with closing(connect_writer(path)) as connection:
        return rebuild_projections(connection)


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
    """Whether a migration asks for a rebuild of the projections, which only the code of this version can do."""
    return connection.execute("SELECT 1 FROM counters WHERE name = 'rebuild_projections'").fetchone() is not None


def migrate(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty database; else run the migrations that are missing."""
    known = migrations()
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > known[-1][0]:
        raise Rejected(
            f"This database was written by a newer Holdfast (schema {version}, this one knows {known[-1][0]}).",
            hint="Upgrade Holdfast; nothing was changed.",
        )
    if version == 0:
        _run(connection, schema(), version=known[-1][0])
    else:
        run_migrations(connection, after=version)


def run_migrations(connection: sqlite3.Connection, *, after: int) -> None:
    """Run the migrations after this one, each in a transaction of its own."""
    for number, _, statements in migrations():
        if number > after:
            if number == EVENT_SHAPES:
                rewrite_events(connection, new_shape, progress="events_rewritten")
            if number == CARD_NUMBERS:
                number_cards(connection)
            _run(connection, statements, version=number)


def _run(connection: sqlite3.Connection, statements: str, *, version: int) -> None:
    connection.executescript(f"BEGIN IMMEDIATE;\n{statements}\nPRAGMA user_version={version};\nCOMMIT;")


PAGE = 2_000


def rebuild_projections(db: sqlite3.Connection) -> tuple[int, set[str]]:
    """How many events were used, and the streams that stop at one that cannot be read. In one transaction."""
    db.execute("BEGIN IMMEDIATE")
    for table in PROJECTIONS:
        db.execute(f"DELETE FROM {table}")  # noqa: S608  # only names of ours
    made = _replay(db)
    db.execute("DELETE FROM counters WHERE name = 'rebuild_projections'")
    db.execute("COMMIT")
    return made


def _replay(db: sqlite3.Connection) -> tuple[int, set[str]]:
    """How many events were used, and the streams that stop at one that cannot be read."""
    count = after = 0
    rows, replay = SqliteRows(db, RememberedRows()), Replay()
    damaged: list[bytes] = []
    while lines := checked(db, "read_all", {"after": after, "limit": PAGE}, skipped=damaged).lines:
        for line in damaged:
            replay.stop(line)
        damaged.clear()
        for line in lines:
            where = location(line)
            after = after + 1 if where is None else where.seq
            if (record := replay.read(line)) is not None:
                count += 1
                project(record, rows)
        rows.flush()
    return count, replay.stopped
