"""Rows by the name of a query, decoded; and the look-up of one row by its id or a prefix of it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any, Generic

from holdfast.domain.errors import Conflict, Gone, NotFound
from holdfast.store.rows import CardRow, R, SessionRow, TaskRow, TitledWait, decode_rows
from holdfast.store.sqlite.queries import queries
from holdfast.store.sqlite.readers import Readers


@dataclass(frozen=True, slots=True)
class Noun(Generic[R]):
    """What can be looked up by a prefix of its id."""

    name: str
    row_type: type[R]
    get: str
    """The query that reads one row by its id."""
    find: str
    """The query that lists ids by prefix: two are enough to know that it is ambiguous, ten make a helpful message."""
    hint: str


SESSION = Noun("session", SessionRow, "get_session", "find_sessions", "`holdfast sessions` lists them.")
TASK = Noun("task", TaskRow, "get_task", "find_tasks", "`holdfast tasks` lists them.")
CARD = Noun("card", CardRow, "get_card", "find_cards", "`holdfast card list` lists them.")
WAIT = Noun("wait", TitledWait, "get_wait", "find_waits", "`holdfast inbox` lists what waits.")


class Fetch:
    """Reads with the connections of the readers: by key at once on the loop, all else on their threads."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def rows(self, query: str, parameters: dict[str, object], row_type: type[R]) -> list[R]:
        """All rows that a query finds."""
        return await self._readers.read(lambda db: fetch(db, query, parameters, row_type))

    def one(self, query: str, parameters: dict[str, object], row_type: type[R]) -> R | None:
        """The row that a query finds by its key."""
        found = self._readers.read_here(lambda db: fetch(db, query, parameters, row_type))
        return found[0] if found else None

    async def values(self, query: str, parameters: dict[str, object]) -> list[tuple[Any, ...]]:
        """What a query finds, as it is stored: for single columns and pairs."""
        return await self._readers.read(lambda db: db.execute(queries()[query], parameters).fetchall())

    async def by_prefix(self, noun: Noun[R], prefix: str) -> R:
        """The row with this id or a unique prefix of it. NotFound, Gone, or Conflict if it fits several."""
        row = self.one(noun.get, {"id": prefix}, noun.row_type)
        if row is not None:
            return row
        found = [id for id, *_ in await self.values(noun.find, _range(prefix))]
        if len(found) == 1:
            return await self.by_prefix(noun, found[0])
        if found:
            raise Conflict(f"{prefix} fits several {noun.name}s: {', '.join(found)}.", hint="Give more characters.")
        if await self.values("find_deleted", _range(f"{noun.name}/{prefix}")):
            raise Gone(f"{noun.name.capitalize()} {prefix} was deleted.", hint=noun.hint.replace("them", "the others"))
        raise NotFound(f"There is no {noun.name} {prefix}.", hint=noun.hint)


def _range(prefix: str) -> dict[str, object]:
    return {"prefix": prefix, "beyond": prefix + "g"}  # ids are hexadecimal


def fetch(db: sqlite3.Connection, query: str, parameters: dict[str, object], row_type: type[R]) -> list[R]:
    """The rows of a query on a connection."""
    cursor = db.execute(queries()[query], parameters)
    return decode_rows(row_type, tuple(column[0] for column in cursor.description), cursor)
