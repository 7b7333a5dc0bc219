"""Migration 14: cards get numbers, in the order of their creation, and their events say them.

Frozen: it knows the JSON of the event, and nothing of the code. Cards are never deleted, so counting gives the same
numbers however often it is done; an event that cannot be read counts, too, and stays as it is.
"""

from __future__ import annotations

import sqlite3
import zlib

import msgspec

EVENT = b',"event":'


def number_cards(db: sqlite3.Connection) -> None:
    """Write the number of each card into its `CardCreated`, in one transaction."""
    db.execute("BEGIN IMMEDIATE")
    rows = db.execute("SELECT seq, data, crc FROM events WHERE kind = 'CardCreated' ORDER BY seq").fetchall()
    changed = [_numbered(*row, number=number) for number, row in enumerate(rows, 1)]
    db.executemany("UPDATE events SET data = ?, crc = ? WHERE seq = ?", filter(None, changed))
    db.execute("COMMIT")


def _numbered(seq: int, data: bytes, crc: int, *, number: int) -> tuple[bytes, int, int] | None:
    """What is stored instead; None for a line that is damaged or that nobody can read."""
    if zlib.crc32(data) != crc:
        return None
    head, found, body = data.partition(EVENT)
    try:
        event = msgspec.json.decode(body[:-1], type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    line = head + found + msgspec.json.encode(event | {"number": number}) + b"}"
    return line, zlib.crc32(line), seq
