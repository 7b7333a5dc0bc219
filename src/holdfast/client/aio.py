"""A client in asyncio, without a second client that would have to be kept in step with the first.

Methods: `await asyncio.to_thread(client.sessions.send, session, "hello")`, which keeps their types. Iterators: `follow`
and `iterate`. A thread reads and hands over; when nobody iterates any more it ends at the next sign of life.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import TypeVar

from holdfast.client.client import Client
from holdfast.client.events import StreamItem

T = TypeVar("T")
AHEAD = 100
"""How many items are read ahead."""


async def follow(client: Client, session: str, *, after: int = 0) -> AsyncGenerator[StreamItem, None]:
    """The same as `client.follow`."""
    closed = threading.Event()
    async with aclosing(iterate(client.follow(session, after=after, closed=closed))) as items:
        try:
            async for item in items:
                yield item
        finally:
            closed.set()


async def iterate(items: Iterator[T]) -> AsyncGenerator[T, None]:
    """The items of an iterator that blocks, such as `client.tasks.follow_output(task)`."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[T] | Exception | None] = asyncio.Queue()
    room = threading.Semaphore(AHEAD)
    closed = threading.Event()

    def read() -> None:
        end: Exception | None = None
        try:
            for item in items:
                room.acquire()
                if closed.is_set():
                    return
                loop.call_soon_threadsafe(queue.put_nowait, (item,))
        except Exception as error:
            end = error
        if not closed.is_set():
            loop.call_soon_threadsafe(queue.put_nowait, end)

    threading.Thread(target=read, name="holdfast-client", daemon=True).start()
    try:
        while (found := await queue.get()) is not None:
            if isinstance(found, Exception):
                raise found
            room.release()
            yield found[0]
    finally:
        closed.set()
        room.release()
