"""Runs the named queries of reads on SQLite, and makes rows of what it returns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, get_type_hints

import msgspec
from msgspec.inspect import BoolType, DictType, ListType, StructType, UnionType, type_info

from holdfast.store.rows import R
from holdfast.store.sqlite.queries import queries
from holdfast.store.sqlite.readers import Readers

Conversion = Callable[[object], object]


def decode_rows(row_type: type[R], columns: Sequence[str], stored: Iterable[Sequence[object]]) -> list[R]:
    """Rows of a query as structs. Each field needs a column; columns without a field are left out."""
    pick, conversions = _plan(row_type, tuple(columns))
    found: list[R] = []
    for values in stored:
        picked = list(pick(values))
        for place, convert in conversions:
            picked[place] = convert(picked[place])
        found.append(row_type(*picked))
    return found


@cache
def _plan(
    row_type: type[msgspec.Struct], columns: tuple[str, ...]
) -> tuple[Callable[[Sequence[object]], tuple[object, ...]], list[tuple[int, Conversion]]]:
    fields = row_type.__struct_fields__
    hints = get_type_hints(row_type)
    places = [columns.index(field) for field in fields]
    found = [(place, _conversion(hints[field])) for place, field in enumerate(fields)]
    return itemgetter(*places), [(place, convert) for place, convert in found if convert is not None]


def _conversion(kind: type) -> Conversion | None:
    if isinstance(type_info(kind), BoolType):
        return bool
    if not _is_json(kind):
        return None
    decode: Callable[[str], object] = msgspec.json.Decoder(kind).decode
    return lambda value: None if value is None else decode(str(value))


def _is_json(kind: type) -> bool:
    info = type_info(kind)
    parts = info.types if isinstance(info, UnionType) else (info,)
    return any(isinstance(part, ListType | DictType | StructType) for part in parts)


def field_encoders(row_type: type[msgspec.Struct]) -> dict[int, Conversion]:
    """The fields that are stored in another form, by their number: lists and structs are JSON."""
    hints = get_type_hints(row_type)
    return {place: _to_json for place, field in enumerate(row_type.__struct_fields__) if _is_json(hints[field])}


def _to_json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


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
