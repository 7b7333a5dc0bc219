"""A store that can die, be in doubt or refuse at its N-th write: every write is a crash point."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeVar

from holdfast.domain.errors import Unavailable
from holdfast.domain.events import Record
from holdfast.store.contract import Append, Appended, Lease, Store
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.rows import PartialText
from holdfast.store.sqlite.store import SqliteStore
from tests.engines import engines

T = TypeVar("T")

How = Literal["before", "after", "doubt", "refuse", "full"]
"""
before, after   the process dies: nothing that comes later happens, no `except Exception` sees it
doubt           it is committed, but the caller is told that the disk refused
refuse, full    it is not committed, and the caller is told so; once, or from then on until there is `space`
"""


class Killed(BaseException):
    """`kill -9`, as far as it can be had inside a process."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the N-th write."""

    at: int
    how: How

    def __str__(self) -> str:
        return f"{self.how} write {self.at}"


def mortal_store(path: Path, fault: Fault | None = None) -> MortalStore:
    """Open the database of a home on the engine of the rigs, with a fault in it."""
    if engines.name == "sqlite":
        return MortalSqliteStore(path).with_fault(fault)
    return MortalPostgresStore(engines.schema_of(path.parent), path.with_name("tasks")).with_fault(fault)


class MortalStore(Store):
    """What a real store is with a fault in it. `writes` counts the points that were passed."""

    _fault: Fault | None
    died: asyncio.Event
    writes = 0

    def with_fault(self, fault: Fault | None) -> Self:
        """From now on."""
        self._fault, self.died = fault, asyncio.Event()
        return self

    @property
    def struck(self) -> bool:
        """Whether the fault was reached."""
        return self._fault is not None and self.writes >= self._fault.at

    def space(self) -> None:
        """There is room on the disk again."""
        self._fault = None

    # --- the points -----------------------------------------------------------------------------

    async def append(self, append: Append) -> Appended:
        return await self._point(super().append(append))  # type: ignore[safe-super]

    async def claim(self, stream: str, *, holder: str) -> Lease:
        return await self._point(super().claim(stream, holder=holder))  # type: ignore[safe-super]

    async def save_partial(self, lease: Lease, partial: PartialText) -> None:
        return await self._point(super().save_partial(lease, partial))  # type: ignore[safe-super]

    async def load(self, stream: str, *, after: int) -> list[Record]:
        self._alive()
        return await super().load(stream, after=after)  # type: ignore[safe-super]

    async def partial(self, stream: str) -> PartialText | None:
        self._alive()
        return await super().partial(stream)

    async def _point(self, write: Coroutine[None, None, T]) -> T:
        self.writes += 1
        how = self._fault.how if self._fault is not None and self._strikes(self._fault) else None
        if self.died.is_set() or how in ("before", "refuse", "full"):
            write.close()
            if how in ("refuse", "full"):
                raise Unavailable("The disk is full.")
            self._die()
        result = await write
        if how == "after":
            self._die()
        if how == "doubt":
            raise Unavailable("The disk did not say whether it took it.")
        self._alive()
        return result

    def _strikes(self, fault: Fault) -> bool:
        return self.writes == fault.at or (fault.how == "full" and self.writes > fault.at)

    def _alive(self) -> None:
        if self.died.is_set():
            raise Killed

    def _die(self) -> None:
        self.died.set()
        raise Killed


class MortalSqliteStore(MortalStore, SqliteStore): ...


class MortalPostgresStore(MortalStore, PostgresStore): ...
