"""Followers share their reads. A read that began before a commit must not hide that commit from anybody.

In one process, with a store whose reads can be held back: the moment that matters lasts microseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.events import SYSTEM, AnyEvent, session_stream
from holdfast.domain.events.session import ModelRequested, SessionCreated, SessionRenamed
from holdfast.domain.events.system import SessionDeleted
from holdfast.gateway.streams import Batch, Frame, Streams
from holdfast.runtime.writer import StreamingTexts
from holdfast.schemas.sessions import Delta
from holdfast.store.contract import PAGE_BYTES, Append, Page, Write
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.subscriptions import RECENT_LINE_BYTES
from tests.actors import person
from tests.eventually import PATIENCE

SESSION = "0123456789abcdef"
STREAM = session_stream(SESSION)


class Taking:
    """A connection that takes everything at once."""

    transport: asyncio.Transport

    async def ready(self) -> None:
        pass


class HeldReads(SqliteStore):
    """The answer of a read is there, and is handed over when the test says so."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.free = asyncio.Event()
        self.free.set()
        self.held = asyncio.Event()

    def recent(self, stream: str, *, after: int) -> tuple[bytes, ...] | None:
        """Nothing is at hand, as for a follower that is behind."""

    async def read(self, stream: str, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        page = await super().read(stream, after=after, limit=limit, size=size)
        if not self.free.is_set():
            self.held.set()
            await self.free.wait()
        return page

    async def write(self, event: AnyEvent) -> None:
        await self.append(Append((Write(STREAM, (event,)),), 0))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[HeldReads]:
    opened = HeldReads(tmp_path / "holdfast.db")
    await opened.write(SessionCreated(session=SESSION, profile="demo", cwd="/", title="", by=person("test")))
    yield opened
    opened.free.set()
    await opened.close()


async def next_of(frames: AsyncGenerator[Frame, None]) -> Frame:
    async with asyncio.timeout(PATIENCE):
        return await anext(frames)


def renamed(title: str) -> SessionRenamed:
    return SessionRenamed(title=title, by=person("test"))


@pytest.mark.parametrize("when", ["while it is under way", "in the moment of its end"])
async def test_promise_4_a_shared_read_hides_nothing(store: HeldReads, when: str) -> None:
    streams = Streams(store, StreamingTexts(store))
    early, late = (
        streams.follow(SESSION, after=0, connection=Taking()),
        streams.follow(SESSION, after=1, connection=Taking()),
    )
    assert await next_of(early) == Batch(await lines(store, 0), (1,))
    store.free.clear()
    waiting = asyncio.create_task(next_of(early))
    await store.held.wait()  # it has found nothing, and does not know it yet
    await store.write(renamed("two"))
    if when == "while it is under way":
        joining = asyncio.create_task(next_of(late))
        await asyncio.sleep(0)
        store.free.set()
    else:  # the loop runs the end of the read first, then this follower, then whatever waits for the end
        store.free.set()
        joining = asyncio.create_task(next_of(late))
    for frame in (await waiting, await joining):
        assert frame == Batch(await lines(store, 1), (2,))
    await early.aclose()
    await late.aclose()


async def test_no_delta_before_the_request_that_it_answers(store: HeldReads) -> None:
    streaming = StreamingTexts(store)
    streams = Streams(store, streaming)
    follower = streams.follow(SESSION, after=1, connection=Taking())
    store.free.clear()
    waiting = asyncio.create_task(next_of(follower))
    await store.held.wait()
    await store.write(asked())
    streaming.start(STREAM, turn=1, step=1, since=2)
    streaming.append(STREAM, text="quick", thinking="")
    store.free.set()
    assert await waiting == Batch(await lines(store, 1), (2,)), "first the request"
    assert await next_of(follower) == Delta(1, 1, 0, "quick", 0, "")
    await follower.aclose()


async def lines(store: HeldReads, after: int) -> tuple[bytes, ...]:
    return (await store.read(STREAM, after=after, limit=10)).lines


class CountedReads(SqliteStore):
    """How often something was read."""

    reads = 0

    async def read(self, stream: str, *, after: int, limit: int, size: int = PAGE_BYTES) -> Page:
        self.reads += 1
        return await super().read(stream, after=after, limit=limit, size=size)


async def test_what_was_just_committed_is_not_read_back(tmp_path: Path) -> None:
    store = CountedReads(tmp_path / "holdfast.db")
    await store.append(Append((Write(STREAM, (renamed("one"),)),), 0))
    streaming = StreamingTexts(store)
    follower = Streams(store, streaming).follow(SESSION, after=0, connection=Taking())
    assert len((await _batch(follower)).lines) == 1
    reads, version = store.reads, 1
    for titles in (["two"], ["three", "four"], ["x" * RECENT_LINE_BYTES], ["after a large one"]):
        waiting = asyncio.create_task(_batch(follower))
        await asyncio.sleep(0)
        await store.append(Append((Write(STREAM, tuple(map(renamed, titles))),), 0))
        batch = await waiting
        stored = await store.read(STREAM, after=version, limit=10)
        version += len(titles)
        assert (batch.lines, batch.cursor) == (stored.lines, version)
    assert store.reads == reads + 4 + 1, "of the follower's own only the one of the large event"
    waiting = asyncio.create_task(_batch(follower))
    streaming.start(STREAM, turn=1, step=1, since=version + 1)
    streaming.append(STREAM, text="quick", thinking="")
    await asyncio.sleep(0)
    await store.append(Append((Write(STREAM, (asked(),)),), 0))
    assert (await waiting).cursor == version + 1, "first the request"
    assert await next_of(follower) == Delta(1, 1, 0, "quick", 0, "")
    await follower.aclose()
    assert store.recent(STREAM, after=version) is None, "nobody follows it"
    await store.close()


async def test_recent_events_of_a_deleted_session_are_dropped(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "holdfast.db")
    with store.subscribe(STREAM):
        for title in ("one", "two"):
            await store.append(Append((Write(STREAM, (renamed(title),)),), 0))
        assert len(store.recent(STREAM, after=0) or ()) == 2
        deleted = SessionDeleted(session=SESSION, title="", events=2, by=person("test"))
        await store.append(Append((Write(SYSTEM, (deleted,)),), 0))
        assert store.recent(STREAM, after=0) is None
    await store.close()


async def _batch(frames: AsyncGenerator[Frame, None]) -> Batch:
    frame = await next_of(frames)
    assert isinstance(frame, Batch)
    return frame


def asked() -> ModelRequested:
    return ModelRequested(turn=1, step=1, attempt=1, model="demo", context_version=1)
