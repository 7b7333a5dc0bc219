"""Copies a whole store into an empty one of another engine, and compares both row by row before that counts.

    read the source (nobody writes to it) → write the target → compare → the caller commits the target

An engine says how its tables are read and written (`StoreTables`). The target is committed as a whole or not at all, so
a copy that was cut leaves nothing that could be taken for a log. Not copied: lives and leases, which belong to
processes, and the search index, which is rebuilt. Settings and keys are files where there is one node
(`lifecycle/shared_files.py`).
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from holdfast.domain.errors import Corrupt
from holdfast.store.tables import TABLES

T = TypeVar("T")
RowValues = tuple[object, ...]
EVENTS = "events"
COPIED: dict[str, tuple[str, ...]] = {
    EVENTS: ("seq",),
    "spans": ("stream", "number"),
    "commands": ("id",),
    **dict(TABLES.values()),
    "card_links": ("parent", "child"),
    "deleted": ("stream",),
    "devices": ("id",),
    "codes": ("hash",),
    "cursors": ("device", "session"),
    "push_subscriptions": ("device",),
    "deliveries": ("id",),
    "partials": ("stream",),
    "counters": ("name",),
}
"""The tables that are copied, each with its key; those that others refer to come first."""
COPIED_COUNTERS = ("fence", "outbox_position")
PARTIAL_COLUMNS = ("stream", "turn", "step", "text", "thinking", "at")
"""Of a text so far, which one engine stores in pieces."""
EVERY = 5_000
"""Rows between two reports of progress."""


class Progress(Protocol):
    """Is called now and then."""

    def __call__(self, what: str, done: int, of: int) -> None:
        """Take what is being done, how many rows are done, and how many there are."""


class StoreTables(Protocol):
    """The tables of one engine, inside of one transaction."""

    async def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table that are copied, sorted."""

    async def count(self, table: str) -> int:
        """About how many rows there are to be copied."""

    def rows(self, table: str, columns: tuple[str, ...]) -> AsyncIterator[RowValues]:
        """All rows in the order of their key: numbers, texts without NUL, bytes, None; truth is 0 or 1."""

    async def write(self, table: str, columns: tuple[str, ...], rows: AsyncIterator[RowValues]) -> None:
        """Add these rows."""

    async def check_alone(self) -> None:
        """Conflict when a gateway uses the store."""

    async def commit(self) -> None:
        """Keep what was written, durably. Without it nothing is changed."""


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied and compared."""

    rows: dict[str, int]
    """By table."""
    digest: str
    """SHA-256 over the stored bytes of all events in their order, each with a newline."""
    damaged: int
    """Events whose bytes do not match their checksum, in the source as in the copy."""

    @property
    def events(self) -> int:
        """How many events there are."""
        return self.rows[EVENTS]


async def copy_store(source: StoreTables, target: StoreTables, progress: Progress) -> CopyReport:
    """Copy everything and compare it. Corrupt if anything differs; else the caller can commit it."""
    tables = {table: await _shared_columns(source, target, table) for table in COPIED}
    counts = {table: await source.count(table) for table in COPIED}
    for table, columns in tables.items():
        rows = _reported(source.rows(table, columns), partial(progress, f"copying {table}", of=counts[table]))
        await target.write(table, columns, rows)
    comparison = _Comparison()
    for table, columns in tables.items():
        pairs = _paired(source.rows(table, columns), target.rows(table, columns))
        async for ours, theirs in _reported(pairs, partial(progress, f"comparing {table}", of=counts[table])):
            comparison.take(table, columns, ours, theirs)
    await source.check_alone()
    return CopyReport(comparison.rows, comparison.digest.hexdigest(), comparison.damaged)


class _Comparison:
    """What was compared so far; Corrupt at the first difference."""

    def __init__(self) -> None:
        self.rows = dict.fromkeys(COPIED, 0)
        self.digest = hashlib.sha256()
        self.damaged = 0

    def take(self, table: str, columns: tuple[str, ...], ours: RowValues | None, theirs: RowValues | None) -> None:
        """Compare a row of the source with the one of the target."""
        if ours != theirs:
            keys = [columns.index(name) for name in COPIED[table]]
            where = ", ".join(str((ours or theirs or ())[place]) for place in keys)
            raise Corrupt(
                f"The copy differs from its source in {table} ({where}), so it was given up. Nothing was changed.",
                hint="Run `holdfast doctor`; if all is well there, please report this.",
            )
        assert theirs is not None
        self.rows[table] += 1
        if table == EVENTS:
            data, crc = theirs[columns.index("data")], theirs[columns.index("crc")]
            assert isinstance(data, bytes)
            self.digest.update(data + b"\n")
            self.damaged += zlib.crc32(data) != crc


async def _shared_columns(source: StoreTables, target: StoreTables, table: str) -> tuple[str, ...]:
    ours, theirs = await source.columns(table), await target.columns(table)
    if ours != theirs:
        raise AssertionError(f"the engines have different columns in {table}: {ours} and {theirs}")
    return ours


async def _reported(items: AsyncIterator[T], report: Callable[[int], None]) -> AsyncIterator[T]:
    done = 0
    async for item in items:
        if done % EVERY == 0:
            report(done)
        done += 1
        yield item


async def _paired(
    ours: AsyncIterator[RowValues], theirs: AsyncIterator[RowValues]
) -> AsyncIterator[tuple[RowValues | None, RowValues | None]]:
    """The rows of both side by side; None where one of them has ended."""
    async for row in ours:
        yield row, await anext(theirs, None)
    async for row in theirs:
        yield None, row


def without_nul(values: RowValues) -> RowValues:
    """Texts as both engines can store them."""
    if any(isinstance(value, str) and "\0" in value for value in values):
        return tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values)
    return values
