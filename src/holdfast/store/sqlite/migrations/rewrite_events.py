"""Rewrites stored events, page by page: how a migration changes the JSON of what happened.

Each page is one transaction that also notes how far it came, so that a start after a crash continues there. An event
that cannot be read stays as it is; its stream stops there, and no other.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.domain.errors import Unavailable

PAGE_EVENTS = 2_000
PAGE_BYTES = 16_000_000
EVENT = b',"event":'
log = logging.getLogger(__name__)
NewShape = Callable[[dict[str, object]], dict[str, object]]
EventRow = tuple[int, bytes, int]


def rewrite_events(db: sqlite3.Connection, new_shape: NewShape, *, progress: str) -> None:
    """Give every event its new shape. `progress` names the counter that says up to which seq that has happened."""
    db.execute("INSERT INTO counters (name, value) VALUES (?, 0) ON CONFLICT DO NOTHING", (progress,))
    (done,) = db.execute("SELECT value FROM counters WHERE name = ?", (progress,)).fetchone()
    (last,) = db.execute("SELECT COALESCE(MAX(seq), 0) FROM events").fetchone()
    if done < last:
        _check_space(db)
        log.info("the stored events are written in the form of this version: %d of %d are done", done, last)
    unreadable = 0
    while rows := _page(db, done):
        changed = [_rewritten(row, new_shape) for row in rows]
        unreadable += changed.count(None)
        done = rows[-1][0]
        db.execute("BEGIN IMMEDIATE")
        db.executemany("UPDATE events SET kind = ?, data = ?, crc = ? WHERE seq = ?", filter(None, changed))
        db.execute("UPDATE counters SET value = ? WHERE name = ?", (done, progress))
        db.execute("COMMIT")
        log.info("the stored events are written in the form of this version: %d of %d are done", done, last)
    if unreadable:
        log.error("%d stored events cannot be read; each of their streams stops there", unreadable)


def _page(db: sqlite3.Connection, after: int) -> list[EventRow]:
    rows: list[EventRow] = []
    size = 0
    cursor = db.execute("SELECT seq, data, crc FROM events WHERE seq > ? ORDER BY seq LIMIT ?", (after, PAGE_EVENTS))
    for row in cursor:
        rows.append(row)
        size += len(row[1])
        if size >= PAGE_BYTES:
            break
    cursor.close()
    return rows


def _rewritten(row: EventRow, new_shape: NewShape) -> tuple[str, bytes, int, int] | None:
    """What is stored instead; None for a line that is damaged or that nobody can read."""
    seq, data, crc = row
    if zlib.crc32(data) != crc:
        return None
    head, found, body = data.partition(EVENT)
    try:
        event = new_shape(msgspec.json.decode(body[:-1], type=dict[str, object]))
        kind = str(event["kind"])
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, ValueError, AttributeError):
        return None
    line = head + found + msgspec.json.encode(event) + b"}"
    return kind, line, zlib.crc32(line), seq


def _check_space(db: sqlite3.Connection) -> None:
    """The whole database may be rewritten, and the write-ahead log of that takes as much at most."""
    (pages,), (size,) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    directory = Path(db.execute("PRAGMA database_list").fetchone()[2]).parent
    needed, free = pages * size, shutil.disk_usage(directory).free
    if free < needed:
        raise Unavailable(
            f"The first start of this version rewrites the stored events and needs {needed / (1 << 20):,.0f} MiB of "
            f"free space on the disk that holds {directory}; there are {free / (1 << 20):,.0f} MiB.",
            hint="Nothing was lost. Free some space, then start the gateway again.",
        )
