"""Runs the named queries of reads on SQLite, and makes rows of what it returns."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from holdfast.store.rows import R
from holdfast.store.sqlite.queries import queries
from holdfast.store.sqlite.readers import Readers
from holdfast.store.tables import decode_rows


class SqliteFetch:
    """Reads with the connections of the readers: by key at once on the loop, all else on their threads."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def rows(self, query: str, row_type: type[R], **parameters: object) -> list[R]:
        return await self._readers.read(lambda db: _rows(_execute(db, query, parameters), row_type))

    async def row(self, query: str, row_type: type[R], **parameters: object) -> R | None:
        found = self._readers.read_here(lambda db: _rows(_execute(db, query, parameters), row_type))
        return found[0] if found else None

    async def values(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        return await self._readers.read(lambda db: _execute(db, query, parameters).fetchall())


def _execute(db: sqlite3.Connection, query: str, parameters: dict[str, object]) -> sqlite3.Cursor:
    stored = {name: json.dumps(given) if isinstance(given, list) else given for name, given in parameters.items()}
    return db.execute(queries()[query], stored)


def _rows(cursor: sqlite3.Cursor, row_type: type[R]) -> list[R]:
    return decode_rows(row_type, tuple(column[0] for column in cursor.description), cursor)
