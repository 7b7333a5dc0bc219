"""Stored lines of the log as they are read: each compared with its checksum."""

from __future__ import annotations

import sqlite3
import zlib

from holdfast.domain.errors import Corrupt
from holdfast.store.contract import PAGE_BYTES, Page
from holdfast.store.sqlite.queries import queries

FETCH = 64


def checked(
    db: sqlite3.Connection,
    query: str,
    parameters: dict[str, object],
    *,
    enough: int = PAGE_BYTES,
    skipped: list[bytes] | None = None,
) -> Page:
    """Stored lines, each compared with its CRC; in handfuls that stay in the cache, since replay goes through here.

    A damaged line is Corrupt; with `skipped` it is put there and left out.
    """
    cursor = db.execute(queries()[query], parameters)
    lines: list[bytes] = []
    most = FETCH if enough >= PAGE_BYTES else 1  # a small page must not grow by many large events at once
    size, handful, seen = 0, min(8, most), 0
    while size < enough and (rows := cursor.fetchmany(handful)):
        some = [line if zlib.crc32(line) == crc else _damaged(line, skipped) for line, crc in rows]
        lines += filter(None, some) if skipped else some
        seen += len(some)
        size += sum(map(len, some)) or 1
        handful = min(most, 1 + (enough - size) * seen // size)  # large events come one by one
    return Page(tuple(lines), more=size >= enough or seen == parameters["limit"])


def _damaged(line: bytes, skipped: list[bytes] | None) -> bytes:
    if skipped is not None:
        skipped.append(line)
        return b""
    raise Corrupt(
        f"A stored event does not match its checksum: {line[:80]!r}…",
        hint="Stop the gateway and run `holdfast doctor`.",
    )
