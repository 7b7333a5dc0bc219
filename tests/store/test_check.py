"""What the doctor finds in a database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.store.sqlite.check import check_database
from holdfast.store.sqlite.migrate import prepare
from holdfast.store.sqlite.queries import migrations
from holdfast.store.sqlite.store import SqliteStore
from tests.store.conformance import STREAM, A, created, said, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


def findings(path: Path) -> list[tuple[str, bool, str]]:
    return [(found.name, found.ok, found.detail) for found in check_database(path)]


async def filled(path: Path) -> None:
    prepare(path)
    store = SqliteStore(path)
    await write(store, STREAM, created(A), said(), said(input="j"))
    await store.close()


def run(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement)


async def test_a_good_one(path: Path) -> None:
    assert findings(path) == [("database", True, "none yet")]
    path.touch()
    assert findings(path) == [("database", True, "empty; the next start of a gateway creates the tables")]
    await filled(path)
    assert findings(path) == [
        ("database", True, "well formed"),
        ("events", True, "3 events, all checksums are correct"),
        ("projections", True, "agree with the events"),
    ]


async def test_one_of_a_newer_version(path: Path) -> None:
    await filled(path)
    known = migrations()[-1][0]
    run(path, f"PRAGMA user_version={known + 1}")
    assert findings(path) == [("database", False, f"schema {known + 1} is newer than this Holdfast knows ({known})")]


def test_garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 1000)
    [found] = check_database(path)
    assert (found.name, found.ok) == ("database", False)
    assert "not a database" in found.detail and "restore a backup" in found.hint


async def test_a_page_that_is_broken(path: Path) -> None:
    await filled(path)
    with closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sessions'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * 100)
    found = check_database(path)[0]
    assert (found.name, found.ok) == ("database", False) and found.detail != "well formed" and found.hint


async def test_rows_that_differ_from_their_events(path: Path) -> None:
    await filled(path)
    run(path, "UPDATE sessions SET message_count = message_count + 1")
    found = check_database(path)[-1]
    assert (found.name, found.ok) == ("projections", False)
    assert found.detail == f"1 sessions differ from their events, the first is {A}" and "--rebuild" in found.hint
