"""The database of an old home gets the events of today: whole, once, and wherever it is killed in between."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.domain.errors import Corrupt, Unavailable
from holdfast.domain.events import decode
from holdfast.store.sqlite.migrate import prepare, rebuild_database
from holdfast.store.sqlite.store import SqliteStore
from tests.store.rebuilt import Tables, check_integrity, projections

HOME = Path(__file__).parents[1] / "homes" / "0.1.tar.xz"
KILLED = """
import logging, os, signal, sys
from pathlib import Path
from holdfast.store.sqlite.migrate import prepare
from holdfast.store.sqlite.migrations import rewrite_events

class Killer(logging.Handler):
    left = int(sys.argv[2])

    def emit(self, record):
        Killer.left -= 1
        if not Killer.left:
            os.kill(os.getpid(), signal.SIGKILL)

logging.basicConfig(level=logging.INFO, handlers=[Killer()])
rewrite_events.PAGE_EVENTS = 30
prepare(Path(sys.argv[1]))
"""
"""A migration that is killed when it says something for the so many-th time: before its first page, after each."""
Stored = list[tuple[int, str, bytes, int]]


class Migrated(NamedTuple):
    events: Stored
    tables: Tables


def stored(database: Path) -> Stored:
    with closing(sqlite3.connect(database)) as db:
        return db.execute("SELECT seq, kind, data, crc FROM events ORDER BY seq").fetchall()


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("old")
    with tarfile.open(HOME) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        packed.extractall(directory)
    with closing(sqlite3.connect(directory / "home" / "holdfast.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return directory / "home" / "holdfast.db"


@pytest.fixture
def database(old: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copy(old, tmp_path / "holdfast.db"))
    check_integrity(tmp_path / "holdfast.db")


@pytest.fixture(scope="module")
def migrated(old: Path, tmp_path_factory: pytest.TempPathFactory) -> Migrated:
    path = Path(shutil.copy(old, tmp_path_factory.mktemp("migrated") / "holdfast.db"))
    prepare(path)
    return Migrated(stored(path), projections(path))


def test_every_event_is_read_and_keeps_its_position(old: Path, migrated: Migrated) -> None:
    before = [decode_old(data) for _, _, data, _ in stored(old)]
    records = [decode(data) for _, _, data, _ in migrated.events]
    assert [(r.seq, r.stream, r.version, r.at) for r in records] == before
    assert [type(r.event).__name__ for r in records] == [kind for _, kind, _, _ in migrated.events]
    assert all(zlib.crc32(data) == crc for _, _, data, crc in migrated.events)


def decode_old(line: bytes) -> tuple[int, str, int, int]:
    with closing(sqlite3.connect(":memory:")) as db:
        fields = ", ".join(f"json_extract(:line, '$.{name}')" for name in ("seq", "stream", "version", "at"))
        found: tuple[int, str, int, int] = db.execute(f"SELECT {fields}", {"line": line.decode()}).fetchone()
        return found


def test_promise_1_a_migration_that_is_killed_continues_where_it_stood(database: Path, migrated: Migrated) -> None:
    kills, last = 0, 0
    for point in (1, 3, 2, 2, 100):
        child = subprocess.run([sys.executable, "-c", KILLED, str(database), str(point)], check=False)
        if point < 100:
            assert child.returncode == -signal.SIGKILL
            done = progress(database)
            assert done >= last and (done > 0) == (kills > 0)
            kills, last = kills + 1, done
    assert (stored(database), projections(database)) == migrated
    assert progress(database) == 0, "nothing is left of it"


def test_killed_before_the_lists_are_rebuilt_they_are_rebuilt_at_the_next_start(
    database: Path, migrated: Migrated
) -> None:
    prepare(database)
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("DELETE FROM sessions")
        db.execute("INSERT INTO counters VALUES ('rebuild_projections', 1)")
    prepare(database)
    assert projections(database) == migrated.tables


def progress(database: Path) -> int:
    with closing(sqlite3.connect(database)) as db:
        row = db.execute("SELECT value FROM counters WHERE name = 'events_rewritten'").fetchone()
        return 0 if row is None else int(row[0])


def test_a_second_start_changes_nothing(database: Path) -> None:
    prepare(database)
    before = database.read_bytes()
    prepare(database)
    assert database.read_bytes() == before


def test_a_rebuild_of_an_older_database_migrates_it_first(database: Path, migrated: Migrated) -> None:
    assert rebuild_database(database) == (len(migrated.events), set())
    assert (stored(database), projections(database)) == migrated


async def test_promise_7_an_event_that_cannot_be_migrated_stops_its_own_stream_only(
    database: Path, migrated: Migrated
) -> None:
    with closing(sqlite3.connect(database)) as db, db:
        seq, stream, data = db.execute("SELECT seq, stream, data FROM events WHERE kind = 'InputReceived'").fetchone()
        data = data.replace(b'"by":', b'"before":')
        db.execute("UPDATE events SET data = ?, crc = ? WHERE seq = ?", (data, zlib.crc32(data), seq))
        (others,) = db.execute("SELECT COUNT(DISTINCT stream) FROM events WHERE stream <> ?", (stream,)).fetchone()
    store = SqliteStore(database)
    with pytest.raises(Corrupt, match="cannot be read by this version"):
        await store.load(stream, after=0)
    streams = {decode(line).stream for _, _, line, _ in migrated.events} - {stream}
    assert len(streams) == others
    for other in streams:
        assert await store.load(other, after=0)
    await store.close()


def test_a_disk_without_space_for_the_migration_is_reported(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    before = stored(database)
    with pytest.raises(Unavailable, match=r"needs .* MiB of free space .*; there are 0 MiB"):
        prepare(database)
    assert stored(database) == before
