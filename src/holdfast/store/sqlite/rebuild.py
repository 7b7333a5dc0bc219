"""Makes the projections anew from the events."""

from __future__ import annotations

import sqlite3

from holdfast.domain.errors import Corrupt
from holdfast.domain.events import decode, location
from holdfast.store.projection import project
from holdfast.store.sqlite.log_reads import checked
from holdfast.store.sqlite.projected_rows import PROJECTIONS, RememberedRows, SqliteRows

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
    rows = SqliteRows(db, RememberedRows())
    stopped: set[str] = set()
    skipped: list[bytes] = []
    while lines := checked(db, "read_all", {"after": after, "limit": PAGE}, skipped=skipped).lines:
        stopped |= {where.stream for line in skipped if (where := location(line)) is not None}
        skipped.clear()
        for line in lines:
            where = location(line)
            after = after + 1 if where is None else where.seq
            try:
                record = decode(line)
            except Corrupt:
                stopped |= set() if where is None else {where.stream}
                continue
            if record.stream in stopped:
                continue
            count += 1
            project(record, rows)
        rows.flush()
    return count, stopped
