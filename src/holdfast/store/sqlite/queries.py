"""The named queries and the migrations of SQLite.

A query in a `.sql` file is a line `-- name: …`, a line that says the purpose, and the statement. Those in `store/sql/`
are for every engine (`store/reads.py` says what they keep to).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from operator import itemgetter

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def _read_queries() -> dict[str, str]:
    found: dict[str, str] = {}
    for package in ("holdfast.store", "holdfast.store.sqlite"):
        for path in sorted((files(package) / "sql").iterdir(), key=lambda path: path.name):
            parts = _NAME.split(path.read_text("utf-8"))
            for name, body in zip(parts[1::2], parts[2::2], strict=True):
                if name in found:
                    raise ValueError(f"two queries are called {name}")
                lines = [line for line in body.splitlines() if line and not line.startswith("--")]
                found[name] = "\n".join(lines).rstrip(";")
    return found


_LIST = re.compile(r"\bIN :(\w+)")
_PARAMETER = re.compile(r":(\w+)")
Parameters = dict[str, object]


@cache
def queries() -> dict[str, str]:
    """Every query by its name. A list is a parameter behind IN; SQLite takes it as JSON."""
    found = _read_queries()
    return {name: _LIST.sub(r"IN (SELECT value FROM json_each(:\1))", query) for name, query in found.items()}


@cache
def statements() -> dict[str, tuple[str, Callable[[Parameters], tuple[object, ...]]]]:
    """Every query with its parameters by place, and what puts them there: by name SQLite looks for each in turn."""
    return {name: (_PARAMETER.sub("?", query), _picker(_PARAMETER.findall(query))) for name, query in queries().items()}


def _picker(names: list[str]) -> Callable[[Parameters], tuple[object, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: tuple(given[name] for name in names)


def migrations() -> list[tuple[int, str, str]]:
    """Every migration in order: its number, its name, its statements."""
    found: list[tuple[int, str, str]] = []
    for path in (files("holdfast.store.sqlite") / "migrations").iterdir():
        if path.name.endswith(".sql"):
            number, _, name = path.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, path.read_text("utf-8")))
    return sorted(found)
