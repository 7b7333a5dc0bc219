"""Named queries from `sql/*.sql`: all database access can be read in one sitting."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


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


def migrations() -> list[tuple[int, str, str]]:
    """Every migration in order: its number, its name, its statements."""
    found: list[tuple[int, str, str]] = []
    for path in (files("holdfast.store") / "migrations").iterdir():
        if path.name.endswith(".sql"):
            number, _, name = path.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, path.read_text("utf-8")))
    return sorted(found)
