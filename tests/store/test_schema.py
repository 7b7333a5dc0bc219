"""The schema agrees with schema.sql, and the queries are those that the code uses."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest

import holdfast
from holdfast.domain.errors import Corrupt, Rejected, Unavailable
from holdfast.store.postgres.queries import queries as postgres_queries
from holdfast.store.sqlite.connections import has_text
from holdfast.store.sqlite.migrate import prepare, run_migrations
from holdfast.store.sqlite.queries import migrations, queries, statements

SOURCE = Path(holdfast.__file__).parent


def shape(db: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Every table and index with its statement, whatever its comments and spaces; and the first rows."""
    statements = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2")
    found: list[tuple[object, ...]] = [(*row[:3], normalised(row[3])) for row in statements]
    return found + db.execute("SELECT name, value FROM counters ORDER BY name").fetchall()


def normalised(sql: str | None) -> str:
    """Without comments and without the spaces that tell a column that was added later from one of the beginning."""
    return re.sub(r"\s*([(),])\s*", r"\1", " ".join(re.sub(r"--.*", "", sql or "").split()))


def test_the_migrations_reach_exactly_the_schema(tmp_path: Path) -> None:
    prepare(tmp_path / "created.db")
    with closing(sqlite3.connect(tmp_path / "created.db")) as created, closing(sqlite3.connect(":memory:")) as migrated:
        run_migrations(migrated, after=0)
        assert shape(migrated) == shape(created)
        for one in (migrated, created):
            assert one.execute("PRAGMA user_version").fetchone() == (migrations()[-1][0],)


def test_the_migrations_are_numbered_without_a_gap() -> None:
    assert [number for number, _, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_preparing_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    prepare(path)
    with closing(sqlite3.connect(path)) as db:
        before = shape(db)
    prepare(path)
    with closing(sqlite3.connect(path)) as db:
        assert shape(db) == before


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    prepare(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=999")
        before = shape(db)
    with pytest.raises(Rejected, match="newer Holdfast"):
        prepare(path)
    with closing(sqlite3.connect(path)) as db:
        assert shape(db) == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    path.write_bytes(b"not a database at all" * 500)
    with pytest.raises(Corrupt, match="is damaged"):
        prepare(path)
    assert path.read_bytes() == b"not a database at all" * 500


def test_a_place_where_no_file_can_be_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be opened"):
        prepare(tmp_path / "no such directory" / "holdfast.db")


def test_every_query_is_used_somewhere() -> None:
    source = "\n".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    assert [name for name in queries() | postgres_queries() if f'"{name}"' not in source] == []


def test_sessions_that_may_be_reset_are_found_by_their_index(tmp_path: Path) -> None:
    """They are looked for every few seconds, and there may be thousands that have nothing to do with it."""
    prepare(tmp_path / "holdfast.db")
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as db:
        for query, index in (
            ("resettable_sessions", "sessions_begun"),
            ("resettable_sessions_with_policy", "sessions_with_policy"),
        ):
            ((*_, plan),) = db.execute(f"EXPLAIN QUERY PLAN {queries()[query]}")
            assert plan == f"SCAN sessions USING INDEX {index}"


def test_every_query_says_its_purpose() -> None:
    lines = [line for path in (SOURCE / "store").rglob("sql/*.sql") for line in path.read_text("utf-8").splitlines()]
    purposes = {line: purpose for line, purpose in pairwise(lines) if line.startswith("-- name: ")}
    assert {line.removeprefix("-- name: ") for line in purposes} == queries().keys() | postgres_queries().keys()
    assert [name for name, purpose in purposes.items() if not purpose.startswith("-- ")] == []


def test_a_query_by_place_is_the_query_by_name(tmp_path: Path) -> None:
    prepare(tmp_path / "holdfast.db")
    with closing(sqlite3.connect(tmp_path / "holdfast.db", isolation_level=None)) as db:
        bound: list[str] = []
        db.create_function("has_text", -1, has_text)
        db.set_trace_callback(bound.append)
        for name, query in queries().items():
            statement, places = statements()[name]
            words: dict[str, object] = {word: f"<{word}>" for word in re.findall(r":(\w+)", query)}
            for sql, parameters in ((query, words), (statement, places(words))):
                with suppress(sqlite3.Error):  # what the words mean is not asked here
                    db.execute(sql, parameters)
            assert bound[-1] == bound[-2]
            assert all(f"'<{word}>'" in bound[-1] for word in words)
