"""Named queries from `sql/*.sql`: all database access can be read in one sitting."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from operator import itemgetter

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r":(\w+)")
Parameters = dict[str, object]


@cache
def queries() -> dict[str, str]:
    """Every query by its name, without its comments."""
    found: dict[str, str] = {}
    for path in sorted((files("holdfast.store") / "sql").iterdir(), key=lambda p: p.name):
        if not path.name.endswith(".sql"):
            continue
        parts = _NAME.split(path.read_text("utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two queries are called {name}")
            lines = [line for line in body.splitlines() if line and not line.startswith("--")]
            found[name] = "\n".join(lines).rstrip(";")
    return found


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
    for path in (files("holdfast.store") / "migrations").iterdir():
        if path.name.endswith(".sql"):
            number, _, name = path.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, path.read_text("utf-8")))
    return sorted(found)
