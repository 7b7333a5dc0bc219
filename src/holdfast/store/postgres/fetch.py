"""Runs the named queries of reads on PostgreSQL, and makes rows of what it returns."""

from __future__ import annotations

from typing import Any

from holdfast.store.postgres.readers import ReadConnections
from holdfast.store.rows import R
from holdfast.store.tables import decode_rows


class PostgresFetch:
    """Reads with the connections of the readers."""

    def __init__(self, readers: ReadConnections) -> None:
        self._readers = readers

    async def rows(self, query: str, row_type: type[R], **parameters: object) -> list[R]:
        answer = await self._readers.query(query, **parameters)
        return decode_rows(row_type, answer.columns, answer.rows)

    async def row(self, query: str, row_type: type[R], **parameters: object) -> R | None:
        found = await self.rows(query, row_type, **parameters)
        return found[0] if found else None

    async def values(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        return (await self._readers.query(query, **parameters)).rows
