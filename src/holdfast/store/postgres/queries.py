"""The named queries and the migrations of PostgreSQL (`store/queries.py`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from holdfast.store.postgres.wire import SqlStatement, numbered
from holdfast.store.queries import read_migrations, read_queries

ENGINE = "holdfast.store.postgres"
_NOT_IN = re.compile(r"\bNOT IN :(\w+)")
_IN = re.compile(r"\bIN :(\w+)")


class Query(NamedTuple):
    """SQL with `$1`, `$2`, …, and which parameters these are."""

    sql: str
    names: tuple[str, ...]


@cache
def queries() -> dict[str, Query]:
    """Every query by its name. A list is a parameter behind IN; PostgreSQL takes it as an array."""
    found = read_queries(ENGINE)
    return {
        name: Query(*numbered(_IN.sub(r"= ANY(:\1)", _NOT_IN.sub(r"<> ALL(:\1)", sql)))) for name, sql in found.items()
    }


def statement(name: str, parameters: Mapping[str, object] | None = None) -> SqlStatement:
    """Return a named query with its parameters."""
    query = queries()[name]
    given = parameters or {}
    return SqlStatement(query.sql, [given[name] for name in query.names])


def migrations() -> list[tuple[int, str, str]]:
    """Every migration in order: its number, its name, its statements."""
    return read_migrations(ENGINE)
