"""The writer and a disk that errs: in doubt it re-reads, and it never gives up."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.domain.errors import NotReady, Unavailable
from holdfast.domain.events import SYSTEM, AnyEvent
from holdfast.store.contract import Append, Appended, CommandKey, Write
from holdfast.store.decisions import encode_writes
from holdfast.store.sqlite.connections import connect_impatient_writer
from holdfast.store.sqlite.migrate import prepare
from holdfast.store.sqlite.operations import do_append, weight
from holdfast.store.sqlite.writer import LIGHT, OpenWriter, Writer
from holdfast.store.subscriptions import Subscriptions
from holdfast.timings import StoreTimings
from tests.eventually import PATIENCE, eventually
from tests.store.conformance import STREAM, A, created, deleted, said, started
from tests.store.test_sqlite import WRITERS


def disk_error() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


class Disk:
    """Hands out connections; a commit in doubt and failures to open can be ordered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.doubts = 0
        self.stuck = 0
        self.closed_doors = 0
        self.committed_by: list[str] = []

    def connect(self) -> sqlite3.Connection:
        if self.closed_doors:
            self.closed_doors -= 1
            raise disk_error()
        disk = self

        class Doubtful(sqlite3.Connection):
            def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
                if sql == "ROLLBACK" and disk.stuck:
                    disk.stuck -= 1
                    raise sqlite3.OperationalError("cannot roll back")
                cursor = super().execute(sql, *parameters)  # type: ignore[arg-type]
                if sql == "COMMIT":
                    disk.committed_by.append(threading.current_thread().name)
                if sql == "COMMIT" and disk.doubts:
                    disk.doubts -= 1
                    raise disk_error()
                return cursor

        return sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, factory=Doubtful)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    prepare(tmp_path / "holdfast.db")
    return Disk(tmp_path / "holdfast.db")


@pytest.fixture(params=WRITERS)
async def writer(disk: Disk, request: pytest.FixtureRequest) -> AsyncIterator[Writer]:
    async with opened(disk.connect, StoreTimings(quick_sync=WRITERS[request.param])) as writer:
        yield writer


@asynccontextmanager
async def opened(connect: OpenWriter, timings: StoreTimings) -> AsyncIterator[Writer]:
    writer = Writer(connect, Subscriptions(), asyncio.get_running_loop(), timings)
    yield writer
    await writer.close()


async def write(writer: Writer, id: str, *events: AnyEvent) -> Appended:
    append = Append((Write(STREAM, events),), 1, CommandKey(id, "digest"))
    return await commit(writer, append)


async def commit(writer: Writer, append: Append) -> Appended:
    encoded = encode_writes(append)
    return await writer.do(lambda tx: do_append(tx, append, encoded), weight=weight(append, encoded))


async def test_promise_1_a_commit_in_doubt_is_refused_and_found_by_the_retry(writer: Writer, disk: Disk) -> None:
    await write(writer, "c1", created(A))
    disk.doubts = 1
    with pytest.raises(Unavailable):
        await write(writer, "c2", said())
    assert not writer.is_head(STREAM, 1)
    again = await write(writer, "c2", said())
    assert not writer.is_head(STREAM, 1)
    assert (again.version, again.seq, again.duplicate) == (2, 2, True)


async def test_after_a_commit_in_doubt_no_seq_is_used_twice(writer: Writer, disk: Disk) -> None:
    await write(writer, "c1", created(A))
    disk.doubts = 1
    with pytest.raises(Unavailable):
        await write(writer, "c2", said())
    after = await write(writer, "c3", said())
    assert (after.version, after.seq) == (3, 3)


async def test_a_writer_that_cannot_reopen_tries_until_it_can(writer: Writer, disk: Disk) -> None:
    await write(writer, "c1", created(A))
    disk.doubts, disk.closed_doors = 1, 2
    for id in ("c2", "c3", "c4"):
        with pytest.raises(Unavailable):
            await write(writer, id, said())
        assert not writer.health.writable
        assert "disk" in writer.health.problem

    async def well() -> bool:
        return writer.health.writable

    await eventually(well)
    assert (await write(writer, "c5", said())).seq == 3


async def test_a_transaction_that_cannot_be_given_up_leaves_nobody_waiting(writer: Writer, disk: Disk) -> None:
    await write(writer, "c1", created(A), said("one", "i"), said("two", "j"), started(1, "i"))
    disk.stuck = 1
    with pytest.raises(Unavailable, match="cannot roll back"):
        await write(writer, "c2", started(2, "j"))
    assert (await write(writer, "c3", said())).version == 5


@pytest.mark.parametrize("quick_sync", WRITERS.values(), ids=WRITERS)
async def test_a_probe_that_fails_leaves_nothing_unsaid(disk: Disk, quick_sync: float) -> None:
    unsaid: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unsaid.append(context["message"]))
    async with opened(disk.connect, StoreTimings(quick_sync=quick_sync, probe=0.01)) as writer:
        await write(writer, "c1", created(A))
        disk.doubts = 5
        with pytest.raises(Unavailable):
            await write(writer, "c2", said())

        async def well() -> bool:
            return writer.health.writable

        await eventually(well)
    gc.collect()
    assert disk.doubts == 0
    assert unsaid == []


@pytest.mark.parametrize("quick", [True, False])
async def test_what_takes_long_is_for_the_thread_on_any_disk(disk: Disk, quick: bool) -> None:
    timings = StoreTimings(quick_sync=WRITERS["a quick disk" if quick else "a slow disk"])
    async with opened(disk.connect, timings) as writer:
        await write(writer, "c1", created(A), *(said(input=str(n)) for n in range(LIGHT)))
        await write(writer, "c2", said())
        await write(writer, "c3", said("x" * 4096 * LIGHT))
        gone = Append((Write(SYSTEM, (deleted(A),)), Write(STREAM, (), expect=LIGHT + 3)), 1)
        await commit(writer, gone)
    here = threading.current_thread().name
    assert [name == here for name in disk.committed_by] == [False, quick, False, False]


# --- another program holds the write lock ---------------------------------------------------------


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Another program with the database open."""
    connection = sqlite3.connect(tmp_path / "holdfast.db", isolation_level=None)
    yield connection
    connection.close()


@asynccontextmanager
async def opened_as_by_the_store(path: Path, timings: StoreTimings) -> AsyncIterator[Writer]:
    async with opened(lambda: connect_impatient_writer(path), timings) as writer:
        await write(writer, "c1", created(A))
        yield writer


@pytest.fixture(params=WRITERS)
async def impatient(disk: Disk, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Writer]:
    """It says soon that somebody else has the lock, and waits for long."""
    timings = StoreTimings(quick_sync=WRITERS[request.param], lock_notice=0.05, lock=PATIENCE)
    async with opened_as_by_the_store(tmp_path / "holdfast.db", timings) as writer:
        yield writer


async def test_promise_1_a_write_waits_for_a_foreign_lock_beside_the_loop(
    impatient: Writer, foreign: sqlite3.Connection
) -> None:
    foreign.execute("BEGIN IMMEDIATE")
    waiting = [asyncio.create_task(write(impatient, f"w{n}", said(input=str(n)))) for n in range(5)]

    async def locked() -> bool:
        return "locked" in impatient.health.problem

    await eventually(locked)
    assert not impatient.health.writable
    assert not any(task.done() for task in waiting), "nobody was refused or told done"
    foreign.execute("ROLLBACK")
    done = await asyncio.gather(*waiting)
    assert [appended.version for appended in done] == [2, 3, 4, 5, 6]
    assert impatient.health.writable


@pytest.mark.parametrize("quick_sync", WRITERS.values(), ids=WRITERS)
async def test_a_lock_that_stays_refuses_with_a_retry_and_the_same_command_is_taken_later(
    disk: Disk, tmp_path: Path, foreign: sqlite3.Connection, quick_sync: float
) -> None:
    timings = StoreTimings(quick_sync=quick_sync, lock_notice=0.05, lock=0.1, probe=0.01)
    async with opened_as_by_the_store(tmp_path / "holdfast.db", timings) as writer:
        foreign.execute("BEGIN IMMEDIATE")
        with pytest.raises(NotReady, match="locked") as refused:
            await write(writer, "c2", said())
        assert refused.value.retry_after >= 1
        assert not writer.health.writable
        foreign.execute("ROLLBACK")

        async def well() -> bool:
            return writer.health.writable

        await eventually(well)
        assert (await write(writer, "c2", said())).version == 2


async def test_the_event_loop_never_waits_inside_of_the_database(
    impatient: Writer, foreign: sqlite3.Connection
) -> None:
    foreign.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(write(impatient, "c2", said()))
    loop, longest = asyncio.get_running_loop(), 0.0
    for _ in range(100):
        before = loop.time()
        await asyncio.sleep(0)
        longest = max(longest, loop.time() - before)
    foreign.execute("ROLLBACK")
    await waiting
    assert longest < 4.0, "SQLite's own patience would be five seconds"


async def test_a_transaction_whose_cleaning_up_fails_leaves_nobody_waiting(
    writer: Writer, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(writer, "c1", created(A))

    def broken(*_: object) -> None:
        raise OSError("the file system is gone")

    monkeypatch.setattr(disk, "connect", broken)
    monkeypatch.setattr(writer, "_connect", disk.connect)
    monkeypatch.setattr(writer, "_trouble", broken)
    disk.doubts = 1
    with pytest.raises(Unavailable, match="the file system is gone"):
        async with asyncio.timeout(PATIENCE):
            await write(writer, "c2", said())
    monkeypatch.undo()
    with pytest.raises(Unavailable):
        await write(writer, "c3", said())
    assert (await write(writer, "c4", said())).version > 2
