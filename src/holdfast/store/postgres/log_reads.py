"""Reads the log: pages of stored lines, each compared with its checksum."""

from __future__ import annotations

import zlib

from holdfast.domain.errors import Conflict, Corrupt, Gone, NotFound
from holdfast.domain.events import SYSTEM, Record, decode_many
from holdfast.store.contract import PAGE_BYTES, Page
from holdfast.store.postgres.queries import statement
from holdfast.store.postgres.readers import ReadConnections
from holdfast.store.postgres.wire import ResultRows

LOAD_PAGE = 2_000


class LogReads:
    """What is read of the log itself."""

    def __init__(self, readers: ReadConnections) -> None:
        self._readers = readers

    async def stream(self, stream: str, *, after: int, limit: int, size: int) -> Page:
        """A page of a stream. Gone, NotFound, or Conflict if the stream ends before `after`."""
        page = await self._page("read_stream", limit, size, stream=stream, after=after)
        if page.lines:
            return page
        head, deleted = await self._readers.run(
            [statement("head", {"stream": stream}), statement("deleted_at", {"stream": stream})]
        )
        if not head.rows and deleted.rows:
            raise Gone(f"{stream} was deleted.")
        if not head.rows and stream != SYSTEM:
            raise NotFound(f"There is no {stream}.")
        _check_cursor(stream, after, head.rows[0][0] if head.rows else 0)
        return page

    async def load(self, stream: str, *, after: int) -> list[Record]:
        """Decoded records of a stream, to the end."""
        records: list[Record] = []
        more = True
        while more:
            page = await self._page("read_stream", LOAD_PAGE, PAGE_BYTES, stream=stream, after=after)
            records.extend(decode_many(page.lines))
            more = page.more
            after = records[-1].version if records else after
        return records

    async def log(self, *, after: int, limit: int, size: int) -> Page:
        """A page of the whole log."""
        page = await self._page("read_all", limit, size, after=after)
        if not page.lines:
            _check_cursor("the log", after, (await self._readers.query("last_seq")).rows[0][0])
        return page

    async def kinds(self, kinds: frozenset[str], *, after: int, limit: int) -> tuple[list[Record], int]:
        """Decoded records of the whole log with these kinds of events, and up to which seq these are all."""
        end = int((await self._readers.query("last_seq")).rows[0][0])
        asked = {"kinds": sorted(kinds), "after": after, "upto": end, "limit": limit, "size": PAGE_BYTES}
        page = checked(await self._readers.query("read_kinds", **asked), limit, PAGE_BYTES, skipped=[])
        records = decode_many(page.lines)
        return records, records[-1].seq if page.more and records else end

    async def _page(self, query: str, limit: int, size: int, **where: object) -> Page:
        return checked(await self._readers.query(query, limit=limit, size=size, **where), limit, size)


def checked(answer: ResultRows, limit: int, size: int, *, skipped: list[bytes] | None = None) -> Page:
    """Stored lines, each compared with its CRC. A damaged one is Corrupt; with `skipped` it goes there."""
    lines: list[bytes] = []
    for line, crc, *_ in answer.rows:
        if zlib.crc32(line) == crc:
            lines.append(line)
        elif skipped is not None:
            skipped.append(line)
        else:
            raise Corrupt(
                f"A stored event does not match its checksum: {line[:80]!r}…",
                hint="Stop the gateway and run `holdfast doctor`.",
            )
    seen = sum(len(row[0]) for row in answer.rows)
    return Page(tuple(lines), more=seen >= size or len(answer.rows) == limit)


def _check_cursor(what: str, after: int, end: int) -> None:
    """A cursor from another life of this log would wait for ever, so it is refused."""
    if after > end:
        raise Conflict(f"The cursor {after} is ahead of {what}, which ends at {end}.", hint="Begin again with after=0.")
