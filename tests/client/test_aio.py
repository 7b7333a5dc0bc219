"""The same client in asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.client import ApiError, Client, EventReceived
from holdfast.client.aio import AHEAD, follow, iterate
from holdfast.domain.events.session import ModelResponded, TurnFinished


async def test_a_turn_is_followed(client: Client) -> None:
    sent = await asyncio.to_thread(client.sessions.create, "say hello", profile="demo")
    texts = []
    async for item in follow(client, sent.session, after=sent.version):
        match item:
            case EventReceived(event=ModelResponded(text=text)):
                texts.append(text)
            case EventReceived(event=TurnFinished()):
                break
            case _:
                pass
    assert texts == ["hello"]


async def test_an_error_ends_the_iteration(client: Client) -> None:
    with pytest.raises(ApiError):
        async for _ in follow(client, "ffffffff"):
            pass


async def test_reading_stays_a_little_ahead_and_ends_when_nobody_iterates() -> None:
    read, ended = 0, asyncio.Event()
    loop = asyncio.get_running_loop()

    def numbers() -> Iterator[int]:
        nonlocal read
        try:
            while True:
                read += 1
                yield read
        finally:
            loop.call_soon_threadsafe(ended.set)

    items = iterate(numbers())
    assert [await anext(items) for _ in range(3)] == [1, 2, 3]
    await asyncio.sleep(0.1)
    assert read <= 3 + AHEAD + 1
    await items.aclose()
    await asyncio.wait_for(ended.wait(), 10)
