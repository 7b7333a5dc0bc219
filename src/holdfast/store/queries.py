"""Named queries: in a `.sql` file a line `-- name: …`, a line that says the purpose, the statement.

Those in `store/sql/` are for every engine and keep to what SQLite and PostgreSQL both understand: a truth value is
tested, or compared with FALSE where an index is to be used; a list is a parameter behind IN. The one function that an
engine adds is `has_text(folded, text, …)`: whether one of the texts has the first in it, in either case.
"""

from __future__ import annotations

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def read_queries(*packages: str) -> dict[str, str]:
    """Every query in the directory `sql` of these packages by its name, without its comments."""
    found: dict[str, str] = {}
    for package in packages:
        for path in sorted((files(package) / "sql").iterdir(), key=lambda path: path.name):
            parts = _NAME.split(path.read_text("utf-8"))
            for name, body in zip(parts[1::2], parts[2::2], strict=True):
                if name in found:
                    raise ValueError(f"two queries are called {name}")
                lines = [line for line in body.splitlines() if line and not line.startswith("--")]
                found[name] = "\n".join(lines).rstrip(";")
    return found
