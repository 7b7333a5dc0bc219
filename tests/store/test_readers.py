"""Reading outside of the loop: which read is next, which waits, and that none is lost."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator

import pytest

from holdfast.domain.errors import Unavailable
from holdfast.store.sqlite.readers import READERS, Readers


def connect() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", check_same_thread=False)


@pytest.fixture
async def readers() -> AsyncIterator[Readers]:
    readers = Readers(connect)
    yield readers
    await readers.close()


def who(_: sqlite3.Connection) -> int:
    return threading.get_ident()


async def held(readers: Readers, count: int) -> tuple[threading.Event, list[asyncio.Task[int]]]:
    """So many reads that go on until the event is set; those for which there is a thread have begun."""
    go, begun = threading.Event(), threading.Semaphore(0)

    def hold(connection: sqlite3.Connection) -> int:
        begun.release()
        go.wait()
        return who(connection)

    reads = [asyncio.create_task(readers.read(hold)) for _ in range(count)]
    for _ in range(min(count, READERS)):
        await asyncio.to_thread(begun.acquire)
    return go, reads


async def test_the_one_that_read_last_reads_next(readers: Readers) -> None:
    go, reads = await held(readers, READERS)
    go.set()
    assert len(set(await asyncio.gather(*reads))) == READERS
    assert len({await readers.read(who) for _ in range(10)}) == 1
    assert threading.get_ident() != await readers.read(who)


async def test_a_read_waits_for_a_free_thread(readers: Readers) -> None:
    go, reads = await held(readers, READERS + 5)
    late = asyncio.create_task(readers.read(who))
    await asyncio.sleep(0)
    assert not late.done()
    go.set()
    assert await late in await asyncio.gather(*reads), "by one of the same threads"


async def test_an_error_reaches_the_reader_that_caused_it_and_no_other(readers: Readers) -> None:
    with pytest.raises(Unavailable, match="no such table"):
        await readers.read(lambda db: db.execute("SELECT * FROM missing"))
    assert await readers.read(lambda db: db.execute("SELECT 1").fetchone()) == (1,)


async def test_a_connection_that_failed_is_closed_and_replaced() -> None:
    opened: list[sqlite3.Connection] = []

    def counted() -> sqlite3.Connection:
        opened.append(connect())
        return opened[-1]

    readers = Readers(counted)
    with pytest.raises(Unavailable, match="no such table"):
        await readers.read(lambda db: db.execute("SELECT * FROM missing"))
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
    assert await readers.read(lambda db: db is opened[1])
    await readers.close()


async def test_a_connection_that_cannot_be_made_is_tried_again() -> None:
    doors = [connect, connect]

    def closed_once() -> sqlite3.Connection:
        if len(doors) == 2:
            doors.pop()
            raise sqlite3.OperationalError("unable to open database file")
        return connect()

    readers = Readers(closed_once)
    with pytest.raises(Unavailable, match="unable to open"):
        await readers.read(who)
    await readers.read(who)
    await readers.close()


async def test_a_cancelled_read_leaves_the_thread_to_others(readers: Readers) -> None:
    go, reads = await held(readers, READERS + 1)
    for read in reads:
        read.cancel()
    go.set()
    await asyncio.gather(*reads, return_exceptions=True)
    assert [await readers.read(lambda _: "read") for _ in range(READERS + 1)] == ["read"] * (READERS + 1)


async def test_at_the_end_what_was_taken_is_finished_and_nothing_more_is_taken() -> None:
    readers = Readers(connect)
    go, reads = await held(readers, READERS + 5)
    closing = asyncio.create_task(readers.close())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await readers.read(who)
    go.set()
    await closing
    assert len(await asyncio.gather(*reads)) == READERS + 5
