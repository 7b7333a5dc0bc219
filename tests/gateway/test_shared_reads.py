"""Followers share their reads. A read that began before a commit must not hide that commit from anybody.

In one process, with a store whose reads can be held back: the moment that matters lasts microseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.events import AnyEvent, session_stream
from holdfast.domain.events.session import ModelRequested, SessionCreated, SessionRenamed
from holdfast.gateway.stream import Batch, Delta, Frame, Streams
from holdfast.runtime.streaming_text import StreamingTexts
from holdfast.store.contract import PAGE_BYTES, Append, Page, Write
from holdfast.store.sqlite import SqliteStore
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
    await store.write(ModelRequested(turn=1, step=1, attempt=1, model="demo", context_version=1))
    streaming.start(STREAM, turn=1, step=1, since=2)
    streaming.append(STREAM, text="quick", thinking="")
    store.free.set()
    assert await waiting == Batch(await lines(store, 1), (2,)), "first the request"
    assert await next_of(follower) == Delta(1, 1, 0, "quick", 0, "")
    await follower.aclose()


async def lines(store: HeldReads, after: int) -> tuple[bytes, ...]:
    return (await store.read(STREAM, after=after, limit=10)).lines
