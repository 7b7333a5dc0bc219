"""The buffers of all stalled clients together are bounded. In one process, over real sockets that are not read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from holdfast.domain.events import session_stream
from holdfast.domain.events.session import SessionCreated, SessionRenamed
from holdfast.gateway.streams import Follower, Frame, Streams, as_message
from holdfast.runtime.writer import StreamingTexts
from holdfast.store.contract import Append, Write
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import GatewayTimings
from tests.actors import person
from tests.eventually import eventually

SESSION = "0123456789abcdef"
LARGE = 900_000
BUDGET = 3_000_000


class Deaf(asyncio.Protocol):
    """The gateway's side of a connection whose other side reads nothing."""

    transport: asyncio.Transport

    def __init__(self, other: socket.socket) -> None:
        self.other = other
        self.gone = asyncio.Event()
        self.sent = 0

    async def ready(self) -> None:
        if self.transport.get_write_buffer_size():
            await self.gone.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        self.gone.set()
        self.other.close()

    async def send(self, frame: Frame) -> None:
        message = as_message(frame)
        self.transport.write(message)
        self.sent += len(message)

    async def left(self) -> None:
        await self.gone.wait()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """With a large event."""
    store = SqliteStore(tmp_path / "holdfast.db")
    opened = SessionCreated(session=SESSION, profile="demo", cwd="/", title="", by=person("test"))
    events = (opened, SessionRenamed(title="x" * LARGE, by=person("test")))
    await store.append(Append((Write(session_stream(SESSION), events),), 0))
    yield store
    await store.close()


@asynccontextmanager
async def opened(store: SqliteStore, *, stalled: float = 3600.0, budget: int = BUDGET) -> AsyncIterator[Streams]:
    """Streams on which nobody looks at what waits unless the test does."""
    timings = GatewayTimings(stalled=stalled, stalled_check=3600.0)
    streams = Streams(store, StreamingTexts(store), timings, budget_bytes=budget)
    yield streams
    await streams.close()


async def follow(streams: Streams) -> tuple[Deaf, asyncio.Task[None]]:
    """A client that follows and takes nothing, once the large event waits for it."""
    ours, theirs = socket.socketpair()
    _, deaf = await asyncio.get_running_loop().create_connection(lambda: Deaf(theirs), sock=ours)
    frames = streams.follow(SESSION, after=0, connection=deaf)
    serving = asyncio.create_task(streams.serve(frames, deaf.send, deaf.left(), follower=Follower("", deaf)))

    async def waits() -> bool:
        return deaf.sent > LARGE

    await eventually(waits)
    return deaf, serving


def waiting(clients: list[tuple[Deaf, asyncio.Task[None]]]) -> int:
    return sum(deaf.transport.get_write_buffer_size() for deaf, _ in clients)


async def finish(clients: list[tuple[Deaf, asyncio.Task[None]]]) -> None:
    for deaf, serving in clients:
        deaf.transport.abort()
        with suppress(asyncio.CancelledError):
            await serving


async def test_whoever_served_all_frames_can_still_say_that_this_was_the_end(store: SqliteStore) -> None:
    """The task that serves is cancelled only when the client disconnects."""

    async def no_frames() -> AsyncGenerator[Frame, None]:
        for frame in list[Frame]():
            yield frame

    async with opened(store) as streams:
        client, serving = await follow(streams)
        follower = Follower("", client)

        async def serve_and_go_on() -> str:
            await streams.serve(no_frames(), client.send, client.left(), follower=follower)
            await asyncio.sleep(0.001)
            return "the end"

        assert await asyncio.create_task(serve_and_go_on()) == "the end"
        await finish([(client, serving)])


async def test_a_large_event_cuts_those_that_stalled_first_when_the_budget_is_used_up(store: SqliteStore) -> None:
    async with opened(store) as streams:
        clients = []
        for _ in range(12):
            clients.append(await follow(streams))
            assert waiting(clients) <= BUDGET + LARGE
        gone = [deaf.gone.is_set() for deaf, _ in clients]
        assert gone == sorted(gone, reverse=True) and 0 < sum(gone) < len(gone), "and the last ones stay"
        await finish(clients)


async def test_what_waits_for_all_clients_is_looked_at_now_and_then(store: SqliteStore) -> None:
    async with opened(store) as streams:
        clients = [await follow(streams) for _ in range(3)]
        assert waiting(clients) <= BUDGET
        for follower in streams._open.values():  # an event stream sends a large event in pieces and holds the rest
            follower.unsent += BUDGET // 3
        await streams._check()
        assert 0 < sum(follower.held() for follower in streams._open.values()) <= BUDGET
        await finish(clients)


async def test_what_is_held_outside_of_the_buffers_counts_as_waiting(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event stream sends a large event in pieces and holds the rest."""
    async with opened(store, stalled=0.0) as streams:
        [client] = clients = [await follow(streams)]
        [follower] = streams._open.values()
        monkeypatch.setattr(client[0].transport, "get_write_buffer_size", lambda: 1000)
        follower.unsent = LARGE
        await streams._check()
        await streams._check()
        await client[0].left()
        assert follower.unsent == 0
        await finish(clients)
