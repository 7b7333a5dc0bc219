"""The named queries and the migrations of SQLite (`store/queries.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from operator import itemgetter

from holdfast.store.queries import read_migrations, read_queries

ENGINE = "holdfast.store.sqlite"
_LIST = re.compile(r"\bIN :(\w+)")
_PARAMETER = re.compile(r":(\w+)")
Parameters = dict[str, object]


@cache
def queries() -> dict[str, str]:
    """Every query by its name. A list is a parameter behind IN; SQLite takes it as JSON."""
    found = read_queries(ENGINE)
    return {name: _LIST.sub(r"IN (SELECT value FROM json_each(:\1))", query) for name, query in found.items()}


@cache
def statements() -> dict[str, tuple[str, Callable[[Parameters], tuple[object, ...]]]]:
    """Every query with its parameters by place, and what puts them there: by name SQLite looks for each in turn."""
    return {name: (_PARAMETER.sub("?", query), _picker(_PARAMETER.findall(query))) for name, query in queries().items()}


def _picker(names: list[str]) -> Callable[[Parameters], tuple[object, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: tuple(given[name] for name in names)


def schema() -> str:
    """The statements that create an empty database."""
    return (files(ENGINE) / "schema.sql").read_text("utf-8")


def migrations() -> list[tuple[int, str, str]]:
    """Every migration in order: its number, its name, its statements."""
    return read_migrations(ENGINE)
