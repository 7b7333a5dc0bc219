"""Event streams: stored events after a cursor, then new ones. First load, reconnect and catch-up are the same code.

A follower is a cursor into the log plus an offset into the text that is being generated. It pulls: the next small page
is read when the connection has taken the last one, so a client that does not read costs no more than its buffers. Such
a client is disconnected by its socket (`server.listen`), or earlier if a large event is waiting (`_check`); it
reconnects with its cursor. Followers at the same cursor share one read.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from holdfast.domain.errors import Unauthorized
from holdfast.domain.events import SYSTEM, session_stream
from holdfast.domain.events.system import SessionDeleted
from holdfast.domain.events.task import TaskPruned
from holdfast.gateway.remote_texts import RemoteTexts
from holdfast.periodic import PeriodicTask
from holdfast.runtime.writer import StreamingText, StreamingTexts
from holdfast.schemas.sessions import Delta
from holdfast.store.contract import Page, Store, Subscription
from holdfast.timings import USUAL, GatewayTimings

PAGE = 5000
FOLLOW_BYTES = 32_768
"""Size of a page for a follower; a larger event is a page of its own."""
PIECE_BYTES = 65_536
STALLED_BYTES = 262_144
"""With more than this unsent, a client that reads nothing for some seconds is disconnected."""
ALL_STALLED_BYTES = 64 * 1024 * 1024
"""Limit for all clients together; above it, those with most unsent bytes are disconnected at once. It is also checked
before large events are sent, after each eighth of it.
"""
SHARED_BYTES = 4 * 1024 * 1024
DELETIONS = {SessionDeleted.__name__, TaskPruned.__name__}
encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Batch:
    """Stored lines, and the cursor after them."""

    lines: tuple[bytes, ...]
    cursors: tuple[int, ...]

    @classmethod
    def of_stream(cls, lines: tuple[bytes, ...], after: int) -> Batch:
        """Return a batch of lines of one stream after a version."""
        return cls(lines, tuple(range(after + 1, after + 1 + len(lines))))

    @property
    def size(self) -> int:
        """The size in bytes."""
        return sum(map(len, self.lines))

    @property
    def cursor(self) -> int:
        """The cursor after this batch."""
        return self.cursors[-1]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing happened; the connection is alive."""


Frame = Batch | Delta | Heartbeat


def seq_of(line: bytes) -> int:
    """Return the seq of a stored line without decoding it."""
    return int(line[7 : line.index(b",")])


class FollowerConnection(Protocol):
    """The connection of a follower."""

    transport: asyncio.Transport

    async def ready(self) -> None:
        """Wait until more can be written."""
        ...


@dataclass(slots=True, eq=False)
class Follower:
    """A client that follows a stream."""

    device: str
    """Empty for the owner's token."""
    connection: FollowerConnection
    unsent: int = 0
    """Bytes of a large event that are not yet in the buffer of the connection."""
    waiting: int = 0
    """Unsent bytes at the last check."""
    since: float = field(default_factory=time.monotonic)
    """Since when that number has not changed."""

    def held(self) -> int:
        """Return the number of unsent bytes."""
        return self.connection.transport.get_write_buffer_size() + self.unsent

    def cut(self) -> None:
        """Close the connection, and drop what is unsent."""
        self.connection.transport.abort()
        self.unsent = 0


class Streams:
    """Every open stream of this gateway."""

    def __init__(
        self,
        store: Store,
        streaming: StreamingTexts,
        timings: GatewayTimings = USUAL.gateway,
        *,
        budget_bytes: int = ALL_STALLED_BYTES,
    ) -> None:
        self._timings = timings
        self._budget_bytes = budget_bytes
        self._store = store
        self._streaming = streaming
        self._remote = RemoteTexts(store, timings.remote_text)
        self._shared: OrderedDict[tuple[str | None, int], Batch] = OrderedDict()
        self._shared_bytes = 0
        self._reading: dict[tuple[str | None, int], asyncio.Task[Batch | None]] = {}
        self._system = store.subscribe(SYSTEM)
        self._system.__enter__()
        self._forgotten = 0
        """How often the shared pages were dropped, since something in them may have been deleted."""
        self._open: dict[asyncio.Task[object], Follower] = {}
        self._checks = PeriodicTask(self._check, name="stalled clients", every=timings.stalled_check)
        self._large_bytes = 0
        """Bytes of large events that were sent since the last check."""
        self._checking = False
        self._revoked: set[str] = set()
        self._closing = False
        self.sent = 0

    @property
    def open(self) -> int:
        """The number of open streams."""
        return len(self._open)

    async def close(self) -> None:
        """End all streams: the gateway is shutting down. Clients reconnect with their cursors."""
        self._closing = True
        await self._checks.stop()
        await self._remote.close()
        self._system.__exit__(None, None, None)
        for task in self._open:
            task.cancel()

    def connected(self, device: str) -> int:
        """Return the number of open streams and sockets of a device."""
        return sum(follower.device == device for follower in self._open.values())

    def cut(self, device: str) -> None:
        """End all streams of a revoked device, and refuse new ones."""
        self._revoked.add(device)
        for task, follower in self._open.items():
            if follower.device == device:
                task.cancel()

    async def _check(self) -> None:
        """Disconnect clients that do not read; and those with most unsent bytes if the total is too large."""
        now = time.monotonic()
        for follower in self._open.values():
            waiting = follower.held()
            if waiting != follower.waiting or waiting == 0:
                follower.waiting, follower.since = waiting, now
            elif waiting > STALLED_BYTES and now - follower.since >= self._timings.stalled:
                follower.cut()
        self._cut_largest()

    def _cut_largest(self) -> None:
        """Disconnect clients until the total of unsent bytes is within the limit.

        First those with many unsent bytes that have read nothing for longest.
        """
        self._large_bytes = 0
        held = [(follower.held(), follower) for follower in self._open.values()]
        held.sort(key=lambda pair: (min(pair[0], STALLED_BYTES), -pair[1].since))
        total = sum(size for size, _ in held)
        while total > self._budget_bytes:
            size, follower = held.pop()
            follower.cut()
            total -= size

    async def serve(
        self, frames: AsyncGenerator[Frame, None], send: Sender, gone: Awaitable[None], *, follower: Follower
    ) -> None:
        """Send frames until the client disconnects or the gateway shuts down. Unauthorized if its device was revoked.

        It runs in the task of the caller, with one more to notice that the client disconnects: a thousand idle
        followers should cost little.
        """
        task, device = asyncio.current_task(), follower.device
        assert task is not None
        if not self._checking:
            self._checking = True
            self._checks.start()
        watch = asyncio.ensure_future(gone)
        leave = _canceller(task)
        watch.add_done_callback(leave)
        self._open[task] = follower
        try:
            if device not in self._revoked:
                await self._pump(frames, send)
        except asyncio.CancelledError:
            if not self._closing and not watch.done() and device not in self._revoked:
                raise
            task.uncancel()
        finally:
            del self._open[task]
            watch.remove_done_callback(leave)
            watch.cancel()
        if device in self._revoked:
            raise Unauthorized("This device was revoked.", hint="Run `holdfast open` to sign in again.")

    async def _pump(self, frames: AsyncGenerator[Frame, None], send: Sender) -> None:
        async with aclosing(frames):
            async for frame in frames:
                self._count_large(frame)
                await send(frame)
                if isinstance(frame, Batch):
                    self.sent += len(frame.lines)
                del frame  # do not hold it while waiting for the next one

    def _count_large(self, frame: Frame) -> None:
        size = frame.size if isinstance(frame, Batch) else 0
        if size > FOLLOW_BYTES:
            self._large_bytes += size
            if self._large_bytes > self._budget_bytes // 8:
                self._cut_largest()

    # --- following --------------------------------------------------------------------------------

    async def follow(
        self, session: str | None, *, after: int, connection: FollowerConnection
    ) -> AsyncGenerator[Frame, None]:
        """Yield everything after a cursor, then what is new. `None` is the whole log, without deltas."""
        stream = session_stream(session) if session is not None else None
        sent = _SentText()
        with self._store.subscribe(stream) as changes, self._remote.watching(stream):
            while True:
                changes.drain()
                await connection.ready()
                while (batch := await self._read(stream, after)) is not None:
                    after = batch.cursor
                    yield batch
                    del batch
                    await connection.ready()
                streaming = self._text(stream, after) if stream is not None else None
                if streaming is not None and (delta := sent.rest(streaming)) is not None:
                    yield delta
                if not await _changed(changes, self._timings.heartbeat):
                    yield Heartbeat()

    def _text(self, stream: str, after: int) -> StreamingText | None:
        """Return the text that is being generated, here or on another node, unless the client lacks its request."""
        own = self._streaming.get(stream)
        if own is None:
            return self._remote.get(stream, after=after)
        return own if own.since <= after else None

    async def page(self, session: str | None, *, after: int, limit: int) -> Page:
        """Return one page."""
        if session is None:
            return await self._store.read_all(after=after, limit=limit)
        return await self._store.read(session_stream(session), after=after, limit=limit)

    async def _read(self, stream: str | None, after: int) -> Batch | None:
        self._forget_deleted()
        key = (stream, after)
        if stream is not None and (recent := self._store.recent(stream, after=after)) is not None:
            return Batch.of_stream(recent, after) if recent else None
        shared = self._shared.get(key)
        if shared is not None:
            return shared
        in_progress = self._reading.get(key)
        if in_progress is not None and (batch := await asyncio.shield(in_progress)) is not None:
            return batch
        # that read found nothing, but it may have begun before the event that woke us: read again
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = asyncio.create_task(self._fetch(stream, after))
        return await asyncio.shield(reading)

    def _forget_deleted(self) -> None:
        """Drop the shared pages if something was deleted."""
        if any(kinds & DELETIONS for kinds in self._system.drain().values()):
            self._shared.clear()
            self._shared_bytes = 0
            self._forgotten += 1

    async def _fetch(self, stream: str | None, after: int) -> Batch | None:
        known = self._forgotten
        try:
            if stream is None:
                lines = (await self._store.read_all(after=after, limit=PAGE, size=FOLLOW_BYTES)).lines
                batch = Batch(lines, tuple(map(seq_of, lines)))
            else:
                lines = (await self._store.read(stream, after=after, limit=PAGE, size=FOLLOW_BYTES)).lines
                batch = Batch.of_stream(lines, after)
        finally:
            del self._reading[stream, after]  # not by a callback: what is found in `_reading` must be in progress
        if not lines:
            return None
        self._forget_deleted()
        if known == self._forgotten:
            self._shared[stream, after] = batch
            self._shared_bytes += batch.size
        while self._shared_bytes > SHARED_BYTES:
            self._shared_bytes -= self._shared.popitem(last=False)[1].size
        return batch


@dataclass(slots=True)
class _SentText:
    """How much of the text of a step this client has."""

    step: tuple[int, int, int] = (0, 0, 0)
    text: int = 0
    thinking: int = 0

    def rest(self, streaming: StreamingText) -> Delta | None:
        """Return the text that it does not have yet."""
        step = (streaming.turn, streaming.step, streaming.since)
        if step != self.step:
            self.step, self.text, self.thinking = step, 0, 0
        text, thinking = streaming.text[self.text :], streaming.thinking[self.thinking :]
        if not text and not thinking:
            return None
        delta = Delta(streaming.turn, streaming.step, self.text, text, self.thinking, thinking)
        self.text, self.thinking = len(streaming.text), len(streaming.thinking)
        return delta


def _canceller(task: asyncio.Task[object]) -> Callable[[object], None]:
    def cancel(_: object) -> None:
        task.cancel()

    return cancel


async def _changed(changes: Subscription, within: float) -> bool:
    try:
        async with asyncio.timeout(within):
            await changes.wait()
    except TimeoutError:
        return False
    return True


Sender = Callable[[Frame], Awaitable[None]]


def as_message(frame: Frame) -> bytes:
    """Return a frame as a WebSocket message."""
    match frame:
        case Batch():
            return b'{"events":[%b],"cursor":%d}' % (b",".join(frame.lines), frame.cursor)
        case Delta():
            return b'{"delta":%b}' % encode(frame)
        case Heartbeat():
            return b'{"heartbeat":true}'


def as_sse(frame: Frame) -> bytes:
    """Return a frame as server-sent events."""
    match frame:
        case Batch():
            pairs = zip(frame.cursors, frame.lines, strict=True)
            return b"".join(b"id: %d\ndata: %b\n\n" % pair for pair in pairs)
        case Delta():
            return b"event: delta\ndata: %b\n\n" % encode(frame)
        case Heartbeat():
            return b": heartbeat\n\n"
