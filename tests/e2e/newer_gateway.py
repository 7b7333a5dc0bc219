"""Starts a gateway as `serve.py` does, of a version that does not exist yet: its migrations have one more, which adds
columns to most tables, as the rule for two versions beside each other allows.
"""

from __future__ import annotations

import sys

import holdfast
from holdfast.store.postgres import migrate, queries
from tests.e2e.serve import main

TABLES = ("events", "commands", "sessions", "turns", "waits", "tasks", "cards", "runs", "leases", "nodes")
ADDS = "; ".join(f"ALTER TABLE {table} ADD COLUMN added_later BIGINT NOT NULL DEFAULT 7" for table in TABLES)
VERSION = "99.0"


def newer() -> int:
    known = queries.migrations()
    later = [*known, (len(known) + 1, "later", ADDS)]
    vars(migrate)["migrations"] = lambda: later
    holdfast.__version__ = VERSION
    return main()


if __name__ == "__main__":
    sys.exit(newer())
