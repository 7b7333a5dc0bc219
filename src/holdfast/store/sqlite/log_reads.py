"""Reads the log on a connection: pages of stored lines, each compared with its checksum."""

from __future__ import annotations

import json
import sqlite3
import zlib

from holdfast.domain.errors import Conflict, Corrupt, Gone, NotFound
from holdfast.domain.events import SYSTEM, Record, decode_many
from holdfast.store.contract import PAGE_BYTES, Page
from holdfast.store.sqlite.operations import head_of
from holdfast.store.sqlite.queries import queries

FETCH = 64
LOAD_PAGE = 200
"""Events that are decoded together: their text fits into memory that is used again, a larger one is newly mapped."""


def read_stream(db: sqlite3.Connection, stream: str, *, after: int, limit: int, size: int) -> Page:
    """A page of a stream. Gone, NotFound, or Conflict if the stream ends before `after`."""
    page = checked(db, "read_stream", {"stream": stream, "after": after, "limit": limit}, enough=size)
    if not page.lines:
        head = head_of(db, stream).version
        if not head and db.execute(queries()["deleted_at"], {"stream": stream}).fetchone() is not None:
            raise Gone(f"{stream} was deleted.")
        if not head and stream != SYSTEM:
            raise NotFound(f"There is no {stream}.")
        _check_cursor(stream, after, head)
    return page


def load_stream(db: sqlite3.Connection, stream: str, *, after: int) -> list[Record]:
    """Decoded records of a stream, to the end."""
    records: list[Record] = []
    more = True
    while more:
        page = checked(db, "read_stream", {"stream": stream, "after": after, "limit": LOAD_PAGE})
        records.extend(decode_many(page.lines))
        more = page.more
        after = records[-1].version if records else after
    return records


def read_log(
    db: sqlite3.Connection, *, after: int, limit: int, size: int = PAGE_BYTES, skipped: list[bytes] | None = None
) -> Page:
    """A page of the whole log; with `skipped` without the damaged lines, which are put there."""
    page = checked(db, "read_all", {"after": after, "limit": limit}, enough=size, skipped=skipped)
    if not page.lines and not skipped:
        _check_cursor("the log", after, db.execute(queries()["last_seq"]).fetchone()[0])
    return page


def load_kinds(db: sqlite3.Connection, kinds: frozenset[str], *, after: int, limit: int) -> tuple[list[Record], int]:
    """Decoded records of the whole log with these kinds of events, and up to which seq these are all."""
    end = int(db.execute(queries()["last_seq"]).fetchone()[0])
    parameters = {"kinds": json.dumps(sorted(kinds)), "after": after, "upto": end, "limit": limit}
    page = checked(db, "read_kinds", parameters, skipped=[])
    records = decode_many(page.lines)
    return records, records[-1].seq if page.more and records else end


def _check_cursor(what: str, after: int, end: int) -> None:
    """A cursor from another life of this log would wait for ever, so it is refused."""
    if after > end:
        raise Conflict(f"The cursor {after} is ahead of {what}, which ends at {end}.", hint="Begin again with after=0.")


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
