"""The embedded engine: SQLite in WAL mode, `synchronous=FULL`, one writer, read-only readers.

Nothing ever opens the database file but SQLite: closing any other handle on it drops the POSIX
locks of this process and silently loses commits.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.domain.events import Record
from holdfast.periodic import FollowerState
from holdfast.store.contract import (
    PAGE_BYTES,
    Append,
    Appended,
    CommandKey,
    Hit,
    Lease,
    OutputFound,
    Page,
    Store,
    StoreHealth,
    Subscription,
    Wanted,
)
from holdfast.store.decisions import accepted, encode_writes
from holdfast.store.rows import PartialText
from holdfast.store.sqlite.connections import connect_impatient_writer, connect_reader, explained
from holdfast.store.sqlite.devices import SqliteDevices
from holdfast.store.sqlite.fetch import SqliteFetch
from holdfast.store.sqlite.log_reads import load_kinds, load_stream, read_log, read_stream
from holdfast.store.sqlite.migrate import prepare
from holdfast.store.sqlite.operations import (
    do_append,
    do_claim,
    do_save_partial,
    stored_command,
    weight,
)
from holdfast.store.sqlite.outbox import SqliteOutbox
from holdfast.store.sqlite.readers import Readers
from holdfast.store.sqlite.search import SearchIndex
from holdfast.store.sqlite.writer import Writer
from holdfast.store.subscriptions import Subscriptions
from holdfast.timings import USUAL, StoreTimings

T = TypeVar("T")


async def open_store(path: Path, timings: StoreTimings = USUAL.store) -> SqliteStore:
    """Open the database; one of an older version is migrated first, beside the loop, since that may take minutes."""
    await asyncio.to_thread(prepare, path)
    return SqliteStore(path, timings)


class SqliteStore(Store):
    """The store on one SQLite file. Made on a running loop, by `open_store` where it may be old."""

    def __init__(self, path: Path, timings: StoreTimings = USUAL.store) -> None:
        prepare(path)
        self._subscriptions = Subscriptions(sweep_seconds=timings.sweep)
        self._readers = Readers(lambda: connect_reader(path))
        fetch = SqliteFetch(self._readers)
        super().__init__(fetch)
        with explained(path):
            self.writer = Writer(
                lambda: connect_impatient_writer(path), self._subscriptions, asyncio.get_running_loop(), timings
            )
            self.devices = SqliteDevices(self.writer, fetch)
            self.outbox = SqliteOutbox(self.writer, fetch)
            self._followed = connect_reader(path)
            self._index = SearchIndex(path.with_name("search.db"), self._read_log, self._subscriptions, timings)

    # --- append, claim --------------------------------------------------------------------------

    @property
    def life(self) -> int:
        return self.writer.life

    async def append(self, append: Append) -> Appended:
        encoded = encode_writes(append)
        return await self.writer.do(lambda tx: do_append(tx, append, encoded), weight=weight(append, encoded))

    async def claim(self, stream: str, *, holder: str) -> Lease:
        return await self.writer.do(lambda tx: do_claim(tx, stream, holder))

    async def save_partial(self, lease: Lease, partial: PartialText) -> None:
        await self.writer.do(lambda tx: do_save_partial(tx, lease, partial))

    async def find_command(self, key: CommandKey) -> Appended | None:
        return await self._readers.read(lambda db: accepted(stored_command(db, key.id), key))

    # --- read, follow ---------------------------------------------------------------------------

    async def read(self, stream: str, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        if self.writer.is_head(stream, after):
            return Page(())
        return await self._read_stream(
            stream, after, lambda db: read_stream(db, stream, after=after, limit=limit, size=size)
        )

    async def read_all(self, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        return await self._readers.read(lambda db: read_log(db, after=after, limit=limit, size=size))

    async def load_kinds(self, kinds: frozenset[str], *, after: int, limit: int) -> tuple[list[Record], int]:
        return await self._readers.read(lambda db: load_kinds(db, kinds, after=after, limit=limit))

    async def load(self, stream: str, *, after: int) -> list[Record]:
        if self.writer.is_head(stream, after):
            return []
        return await self._read_stream(stream, after, lambda db: load_stream(db, stream, after=after))

    def recent(self, stream: str, *, after: int) -> tuple[bytes, ...] | None:
        return () if self.writer.is_head(stream, after) else self._subscriptions.recent.after(stream, after) or None

    def subscribe(
        self, stream: str | None, wanted: Wanted | None = None, *, elsewhere: Wanted | None = None
    ) -> Subscription:
        return self._subscriptions.follow(stream, wanted, elsewhere)

    def hint(self, stream: str) -> None:
        self._subscriptions.hint(stream)

    async def search(self, text: str, *, limit: int) -> list[Hit]:
        return await asyncio.to_thread(self._index.search, text, limit)

    async def search_outputs(self, text: str, *, limit: int) -> list[OutputFound]:
        return await asyncio.to_thread(self._index.search_outputs, text, limit)

    @property
    def search_state(self) -> FollowerState:
        return self._index.state

    async def indexed(self) -> int:
        """How far the search index has come, for callers that must wait for it."""
        return await asyncio.to_thread(lambda: self._index.cursor)

    @property
    def health(self) -> StoreHealth:
        return self.writer.health

    @property
    def commit_stats(self) -> tuple[int, float]:
        return self.writer.commits, self.writer.commit_seconds

    async def close(self) -> None:
        self._subscriptions.close()
        await asyncio.to_thread(self._index.close)
        await self._readers.close()
        await self.writer.close()
        self._followed.close()  # last and read-only: so `-wal` and `-shm` stay for a start on a full disk

    async def _read_stream(self, stream: str, after: int, read: Callable[[sqlite3.Connection], T]) -> T:
        """A few events at its end are read at once."""
        near = self.writer.is_near_head(stream, after)
        return self._readers.read_here(read) if near else await self._readers.read(read)

    def _read_log(self, after: int, limit: int) -> Page:
        """For the search index, which continues after a damaged line."""
        return read_log(self._followed, after=after, limit=limit, skipped=[])
