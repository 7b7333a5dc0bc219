"""The named queries and the migrations of an engine, read from its `.sql` files.

A query is a line `-- name: …`, a line that says the purpose, and the statement with its parameters as `:name`. Those in
`store/sql/` are for every engine (`reads.py` says what they keep to), those in `sql/` of an engine in its own words.
"""

from __future__ import annotations

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def read_queries(engine: str) -> dict[str, str]:
    """Return every query of an engine (the name of its package) as it is written, by its name."""
    found: dict[str, str] = {}
    for package in ("holdfast.store", engine):
        for path in sorted((files(package) / "sql").iterdir(), key=lambda path: path.name):
            parts = _NAME.split(path.read_text("utf-8"))
            for name, body in zip(parts[1::2], parts[2::2], strict=True):
                if name in found:
                    raise ValueError(f"two queries are called {name}")
                lines = [line for line in body.splitlines() if line and not line.startswith("--")]
                found[name] = "\n".join(lines).rstrip(";")
    return found


def read_migrations(engine: str) -> list[tuple[int, str, str]]:
    """Return every migration of an engine in order: its number, its name, its statements."""
    found: list[tuple[int, str, str]] = []
    for path in (files(engine) / "migrations").iterdir():
        if path.name.endswith(".sql"):
            number, _, name = path.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, path.read_text("utf-8")))
    return sorted(found)
