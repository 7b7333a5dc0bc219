"""What is true of the embedded engine in particular: one file, one writer, a checksum per event."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast.domain.errors import Corrupt, Unavailable
from holdfast.domain.events import SYSTEM, task_stream
from holdfast.domain.events.session import (
    InputRevised,
    InputWithdrawn,
    ModelInterrupted,
    SessionArchived,
    SessionPinned,
    SessionRestored,
    TurnResumed,
    TurnSuspended,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.events.task import ProcessStarted, TaskPinned, TaskPruned
from holdfast.store import subscriptions
from holdfast.store.contract import Hit
from holdfast.store.reads import ProjectionReads
from holdfast.store.sqlite.connections import connect_reader
from holdfast.store.sqlite.fetch import SqliteFetch
from holdfast.store.sqlite.migrate import prepare
from holdfast.store.sqlite.readers import Readers
from holdfast.store.sqlite.store import SqliteStore, open_store
from holdfast.timings import StoreTimings
from tests.actors import person
from tests.eventually import PATIENCE, eventually
from tests.store.conformance import (
    AT,
    STREAM,
    A,
    B,
    C,
    asked,
    command_result,
    created,
    deleted,
    ended,
    finished,
    found,
    responded,
    said,
    session,
    started,
    task,
    versions,
    write,
)
from tests.store.rebuilt import check_projections, projections


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    await store.close()


@contextmanager
def writer_held_up(path: Path) -> Iterator[None]:
    """Somebody else writes for so long: the store's own transaction cannot begin."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


# --- promise 1: written before told ---------------------------------------------------------------


async def test_promise_1_nothing_is_visible_before_the_commit(store: SqliteStore, path: Path) -> None:
    await session(store, A)
    with store.subscribe(None) as changes:
        with writer_held_up(path):
            job = asyncio.create_task(write(store, STREAM, said()))
            for _ in range(20):
                await versions(store, STREAM)
                assert not job.done()
                assert changes.drain() == {}
        await job
        await changes.wait()
        assert await versions(store, STREAM) == [1, 2]


def test_promise_1_a_commit_is_synced_to_the_disk(path: Path) -> None:
    async def pragmas() -> list[object]:
        store = SqliteStore(path)
        connection = store.writer._connection
        names = ("journal_mode", "synchronous", "fullfsync")
        values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
        await store.close()
        return values

    assert asyncio.run(pragmas()) == ["wal", 2, 1]


async def test_many_appends_share_a_commit(store: SqliteStore, path: Path) -> None:
    await session(store, A)
    before = store.writer.commits
    with writer_held_up(path):
        jobs = [asyncio.create_task(write(store, STREAM, said(input=str(n)))) for n in range(64)]
        await versions(store, STREAM)
    await asyncio.gather(*jobs)
    assert store.writer.commits - before <= 3
    assert await versions(store, STREAM) == list(range(1, 66))


async def test_an_operation_that_breaks_a_constraint_fails_alone(store: SqliteStore, path: Path) -> None:
    """The database refuses what the code should never have tried; the others in the batch are not harmed."""
    await session(store, A, "one", "two")
    await write(store, STREAM, started(1, "i"))
    with writer_held_up(path):
        jobs = [write(store, STREAM, said(input=str(n)) if n != 3 else started(2, "j")) for n in range(8)]
        results = asyncio.gather(*jobs, return_exceptions=True)
        await versions(store, STREAM)
    failures = [result for result in await results if isinstance(result, BaseException)]
    assert len(failures) == 1, "two turns may not be open at once"
    assert isinstance(failures[0], sqlite3.IntegrityError)
    assert await versions(store, STREAM) == list(range(1, 12))
    assert store.health.writable


# --- bit rot --------------------------------------------------------------------------------------


def flip(path: Path, version: int, needle: bytes) -> None:
    """One bit of the stored event, changed behind the store's back."""
    with closing(sqlite3.connect(path)) as db:
        [(seq, data)] = db.execute("SELECT seq, data FROM events WHERE version = ?", (version,)).fetchall()
        at = data.index(needle)
        rotten = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        db.execute("UPDATE events SET data = ? WHERE seq = ?", (rotten, seq))
        db.commit()


async def test_promise_7_a_flipped_bit_is_noticed_wherever_it_is_read(path: Path) -> None:
    store = SqliteStore(path)
    await session(store, A, "one", "two", "three")
    await session(store, B, "unharmed")
    await store.close()
    flip(path, 3, b"two")
    store = SqliteStore(path)
    for reading in (
        store.read(STREAM, after=0, limit=10),
        store.read_all(after=0, limit=10),
        store.load(STREAM, after=0),
        store.load(STREAM, after=2),
    ):
        with pytest.raises(Corrupt, match=rf"{STREAM}.*version\W+3\b"):
            await reading
    assert len(await store.load(STREAM, after=3)) == 1
    assert await versions(store, f"session/{B}") == [1, 2]
    await store.close()


# --- the search index is only an index ------------------------------------------------------------


def lose(index: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        index.with_name(index.name + suffix).unlink(missing_ok=True)


def scribble(index: Path) -> None:
    lose(index)
    index.write_bytes(b"garbage" * 10_000)


def run_ahead(index: Path) -> None:
    """As if the log had been restored from an older backup."""
    with closing(sqlite3.connect(index)) as db:
        db.execute("UPDATE cursor SET seq = 1000")
        db.execute("UPDATE texts SET text = 'from another life'")
        db.commit()


def change_shape(index: Path) -> None:
    """As another version left it."""
    with closing(sqlite3.connect(index)) as db:
        db.execute("ALTER TABLE texts DROP COLUMN at")
        db.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize("harm", [lose, scribble, run_ahead, change_shape])
async def test_a_harmed_search_index_is_rebuilt_from_the_log(path: Path, harm: object) -> None:
    store = SqliteStore(path)
    await session(store, A, "needle")
    await found(store, "needle")
    await store.close()
    assert callable(harm)
    harm(path.with_name("search.db"))
    store = SqliteStore(path)
    await found(store, "needle")
    await write(store, STREAM, said("another"))
    await found(store, "another")
    assert await store.search("from another life", limit=1) == []
    await store.close()


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_output_that_is_the_result_of_a_call_is_indexed_once(path: Path, at_once: bool) -> None:
    store = SqliteStore(path)
    await session(store, A)
    await write(store, task_stream(B), task(B, foreground=True), ended(B, output="a needle\n"))
    if not at_once:
        await eventually(lambda: store.search_outputs("needle", limit=9))
    await write(store, STREAM, command_result(B, "a needle\n[done: exit code 0]"))
    await found(store, "needle")
    assert [hit.task for hit in await store.search_outputs("needle", limit=9)] == [B]
    await store.close()
    with closing(sqlite3.connect(path.with_name("search.db"))) as db:
        rows = db.execute("SELECT role, task FROM texts WHERE text LIKE '%needle%'").fetchall()
        grams = db.execute("SELECT count(*) FROM grams WHERE grams MATCH 'needle'").fetchone()
    assert (rows, grams) == ([("tool", B)], (1,))


@pytest.mark.parametrize("noticed", ["by a search", "by an append"])
async def test_a_search_index_that_breaks_while_in_use_is_rebuilt(path: Path, noticed: str) -> None:
    store = SqliteStore(path)
    await session(store, A, *(f"needle {n} " + "x" * 200 for n in range(400)))
    if noticed == "by a search":
        await found(store, "needle 399")
    await store.close()
    index = path.with_name("search.db")
    page = index.stat().st_size // 4096 // 2
    with index.open("r+b") as file:
        file.seek(4096 * page)
        file.write(b"\xff" * (4096 * page - 4096))
    store = SqliteStore(path)

    async def look() -> list[Hit]:
        try:
            hits = await store.search("needle 399", limit=10)
            return hits if len(await store.search("needle", limit=500)) == 400 else []
        except Unavailable:
            return []

    assert [hit.version for hit in await eventually(look)] == [401]
    await store.close()


# --- projections ----------------------------------------------------------------------------------


async def test_rebuilt_projections_equal_the_live_ones(store: SqliteStore, path: Path) -> None:
    await session(store, A, "one", "two", at=AT)
    await write(store, STREAM, started(1, "i"), asked(), responded("a long answer " * 50), finished(1), at=AT + 1)
    await write(
        store, STREAM, started(2, "j"), asked(), TurnSuspended(turn=2, interruption="shutdown", reason="bye"), at=AT + 2
    )
    cut = ModelInterrupted(turn=2, step=1, text="x", thinking="", reason="y")
    wait = WaitOpened(turn=2, wait="2.w1", purpose="resume", reason="old")
    await write(store, STREAM, cut, wait, WaitAnswered(turn=2, wait="2.w1", answer="resume", by=person("t")), at=AT + 3)
    await write(store, STREAM, TurnResumed(turn=2, attempt=1, interruption="crash", reason="c", away_ms=1), at=AT + 4)
    await session(store, B, "hi", at=AT + 5)
    await write(
        store,
        f"session/{B}",
        SessionArchived(by=person("t")),
        SessionRestored(by=person("t")),
        SessionArchived(by=person("t")),
    )
    edited = InputRevised(input=f"{B}-0", by=person("t"), text="ho", mode="steer", place=1)
    await write(store, f"session/{B}", SessionPinned(pinned=True, by=person("t")), edited)
    await write(store, f"session/{B}", InputWithdrawn(input=f"{B}-0", by=person("t")))
    await session(store, C, "to be deleted", at=AT + 6)
    await write(store, SYSTEM, deleted(C), at=AT + 7)
    await write(
        store, task_stream(A), task(A, session=A), TaskPinned(task=A, pinned=True, by=person("t")), ended(A), at=AT + 8
    )
    await write(store, task_stream(B), task(B), ProcessStarted(task=B, pid=5), at=AT + 9)
    await write(store, task_stream(C), task(C), ended(C, files=["a"]), at=AT + 10)
    await write(store, SYSTEM, TaskPruned(task=C, title="t", state="done", bytes=0, by=person("t")), at=AT + 11)
    streaming = projections(path)
    assert [len(streaming[table]) for table in ("sessions", "turns", "tasks", "deleted")] == [2, 2, 2, 2]
    check_projections(path)


async def test_the_database_refuses_two_open_turns(store: SqliteStore) -> None:
    await write(store, STREAM, created(A), said(), said(), started(1, "i"))
    with pytest.raises(sqlite3.IntegrityError):
        await write(store, STREAM, started(2, "j"))


async def test_a_long_log_is_counted_once(store: SqliteStore, path: Path) -> None:
    asked: list[str] = []

    def connect() -> sqlite3.Connection:
        connection = connect_reader(path)
        connection.set_trace_callback(asked.append)
        return connection

    readers = Readers(connect)
    reads = ProjectionReads(SqliteFetch(readers))
    await session(store, A, "one", "two")
    assert (await reads.counts()).events == 3
    await write(store, STREAM, said(input="three"))
    asked.clear()
    assert (await reads.counts()).events == 4
    await readers.close()
    assert [query for query in asked if "FROM events" in query and "seq > 3" not in query] == []


# --- notices are hints ----------------------------------------------------------------------------


async def test_a_follower_finds_commits_without_a_notification(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions.Subscriptions, "committed", lambda self, records: None)
    store = SqliteStore(path, StoreTimings(sweep=0.01))
    await session(store, A)
    async with asyncio.timeout(PATIENCE):
        with store.subscribe(STREAM) as changes:
            await write(store, STREAM, said("needle"))
            while len(await store.load(STREAM, after=0)) < 2:
                await changes.wait()
                changes.drain()
            await changes.wait()
            assert changes.drain() == {STREAM: set()}, "woken without a reason"
        assert [hit.version for hit in await found(store, "needle")] == [2]
    await store.close()


async def test_a_database_is_migrated_beside_the_loop(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    going_on = threading.Event()

    def slow(path: Path) -> None:
        assert going_on.wait(PATIENCE)
        prepare(path)

    monkeypatch.setattr("holdfast.store.sqlite.store.prepare", slow)
    opening = asyncio.create_task(open_store(path))
    await asyncio.sleep(0)
    going_on.set()
    store = await opening
    await session(store, A)
    await store.close()
