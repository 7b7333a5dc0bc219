"""The rows of the projections in PostgreSQL: asked for before the decisions, written by one statement for many rows.

The statements are made of the fields of the rows. Of a row that changed only the changed columns are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import NamedTuple, get_type_hints

from msgspec.inspect import BoolType, FloatType, IntType, UnionType, type_info
from msgspec.structs import astuple

from holdfast.store.postgres.wire import BIGINT, BOOLEAN, DOUBLE, TEXT, TYPE_NAMES, Array, SqlStatement
from holdfast.store.rows import Row
from holdfast.store.tables import TABLES, Key, differences, field_encoders

Places = tuple[int, ...]
"""The numbers of some fields of a row."""


class ProjectionTable(NamedTuple):
    """The table of a type of rows."""

    name: str
    fields: tuple[str, ...]
    types: tuple[int, ...]
    key: Places
    key_of: Callable[[Row], Key]
    encoders: dict[int, Callable[[object], object]]


@cache
def table_of(row_type: type[Row]) -> ProjectionTable:
    """Return the table of a type of rows."""
    name, key = TABLES[row_type]
    fields = row_type.__struct_fields__
    hints = get_type_hints(row_type)
    places = tuple(fields.index(column) for column in key)
    values = attrgetter(*key)
    key_of = (lambda row: (row_type, *values(row))) if len(key) > 1 else (lambda row: (row_type, values(row)))
    types = tuple(_column_type(hints[field]) for field in fields)
    return ProjectionTable(name, fields, types, places, key_of, field_encoders(row_type))


def _column_type(kind: type) -> int:
    info = type_info(kind)
    for part in info.types if isinstance(info, UnionType) else (info,):
        match part:
            case BoolType():
                return BOOLEAN
            case IntType():
                return BIGINT
            case FloatType():
                return DOUBLE
            case _:
                continue
    return TEXT


def rows_statement(row_type: type[Row], keys: Iterable[tuple[str | int, ...]]) -> SqlStatement:
    """Return the query for the rows with these keys."""
    table = table_of(row_type)
    columns = zip(*keys, strict=True)
    return SqlStatement(
        _select(row_type), [Array(table.types[place], values) for place, values in zip(table.key, columns, strict=True)]
    )


@cache
def _select(row_type: type[Row]) -> str:
    table = table_of(row_type)
    fields = ", ".join(f"t.{field}" for field in table.fields)
    return f"SELECT {fields} FROM {_unnest(table, table.key)} JOIN {table.name} t ON {_same_key(table)}"  # noqa: S608  # names of ours


def row_statements(changed: Iterable[tuple[Row | None, Row]]) -> list[SqlStatement]:
    """Return what writes these rows, each given as it is stored (None: it is new) and as it is to be.

    Changes come first: a turn that ends makes room for the next one.
    """
    updates: dict[tuple[type[Row], Places], list[tuple[object, ...]]] = {}
    inserts: dict[type[Row], list[tuple[object, ...]]] = {}
    for stored, row in changed:
        values = astuple(row)
        if stored is None:
            inserts.setdefault(type(row), []).append(values)
        elif places := differences(astuple(stored), values):
            updates.setdefault((type(row), places), []).append(values)
    written = [
        _written(_update(row_type, places), row_type, table_of(row_type).key + places, rows)
        for (row_type, places), rows in updates.items()
    ]
    for row_type, rows in inserts.items():
        written.append(_written(_insert(row_type), row_type, tuple(range(len(rows[0]))), rows))
    return written


def _written(sql: str, row_type: type[Row], places: Places, rows: list[tuple[object, ...]]) -> SqlStatement:
    table = table_of(row_type)
    columns: list[Array] = []
    for place in places:
        encode = table.encoders.get(place)
        values = [row[place] for row in rows]
        columns.append(Array(table.types[place], values if encode is None else [encode(value) for value in values]))
    return SqlStatement(sql, columns)


@cache
def _update(row_type: type[Row], places: Places) -> str:
    table = table_of(row_type)
    changes = ", ".join(f"{table.fields[place]} = given.{table.fields[place]}" for place in places)
    source = _unnest(table, table.key + places)
    return f"UPDATE {table.name} t SET {changes} FROM {source} WHERE {_same_key(table)}"  # noqa: S608


@cache
def _insert(row_type: type[Row]) -> str:
    table = table_of(row_type)
    source = _unnest(table, tuple(range(len(table.fields))))
    return f"INSERT INTO {table.name} ({', '.join(table.fields)}) SELECT * FROM {source}"  # noqa: S608


def _unnest(table: ProjectionTable, places: Places) -> str:
    """The given values as rows with the names of their columns."""
    arrays = ", ".join(f"${number}::{TYPE_NAMES[table.types[place]]}[]" for number, place in enumerate(places, 1))
    return f"unnest({arrays}) AS given({', '.join(table.fields[place] for place in places)})"


def _same_key(table: ProjectionTable) -> str:
    return " AND ".join(f"t.{table.fields[place]} = given.{table.fields[place]}" for place in table.key)
