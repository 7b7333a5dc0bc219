"""What the doctor asks of SQLite: whether the database is well. Nothing is changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast.domain.errors import Corrupt, HoldfastError
from holdfast.domain.events import decode_readable, location
from holdfast.store.contract import Finding
from holdfast.store.sqlite.connections import connect_reader
from holdfast.store.sqlite.log_reads import checked
from holdfast.store.sqlite.queries import migrations, queries

PAGE = 2_000
WAL_RESET_FIXED = (3, 51, 3)


def check_engine() -> Finding:
    """One connection writes and checkpoints, so the WAL-reset bug of older versions cannot be met."""
    version = sqlite3.sqlite_version
    fixed = sqlite3.sqlite_version_info >= WAL_RESET_FIXED
    note = "" if fixed else " (has the WAL-reset bug; harmless here: only one connection writes)"
    return Finding("sqlite", True, version + note)


def check_database(path: Path) -> list[Finding]:
    """Check a database, which may be in use: its structure, every checksum, and the projections against the events."""
    if not path.exists():
        return [Finding("database", True, "none yet")]
    try:
        with closing(connect_reader(path)) as db:
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
            known = migrations()[-1][0]
            if version == 0 and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                return [Finding("database", True, "empty; the next start of a gateway creates the tables")]
            if version > known:
                detail = f"schema {version} is newer than this Holdfast knows ({known})"
                return [Finding("database", False, detail, "Upgrade Holdfast.")]
            return [_integrity(db), _checksums(db), _projections(db)]
    except (sqlite3.Error, HoldfastError) as error:
        hint = "Move it aside and restore a backup; do not repair it in place."
        return [Finding("database", False, str(error), hint)]


def _integrity(db: sqlite3.Connection) -> Finding:
    said = [str(row[0]) for row in db.execute("PRAGMA quick_check(5)")]
    ok = said == ["ok"]
    return Finding("database", ok, "well formed" if ok else "; ".join(said), "" if ok else "Restore a backup.")


def _checksums(db: sqlite3.Connection) -> Finding:
    count = after = 0
    unreadable: list[Corrupt] = []
    try:
        while lines := checked(db, "read_all", {"after": after, "limit": PAGE}).lines:
            count += len(lines)
            unreadable += decode_readable(lines)[1]
            last = location(lines[-1])
            after = after + len(lines) if last is None else last.seq
    except Corrupt as error:
        return Finding("events", False, error.message, "The stream stops there; restore a backup.")
    if unreadable:
        detail = f"{len(unreadable)} of {count} cannot be read, and their streams stop there. {unreadable[0].message}"
        return Finding("events", False, detail, unreadable[0].hint)
    return Finding("events", True, f"{count} events, all checksums are correct")


def _projections(db: sqlite3.Connection) -> Finding:
    """The counts that people see against the events that they come from."""
    found = [id for (id,) in db.execute(queries()["miscounted_sessions"])]
    if found:
        detail = f"{len(found)} sessions differ from their events, the first is {found[0]}"
        return Finding("projections", False, detail, "Stop the gateway, then: holdfast doctor --rebuild")
    return Finding("projections", True, "agree with the events")
