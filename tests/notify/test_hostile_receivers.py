"""Receivers that want to keep us busy, and addresses that want to lead us elsewhere: one notice waits, nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from holdfast.notify.channel import GiveUp, TryAgain
from holdfast.notify.http_poster import HttpAnswer, HttpPoster
from holdfast.notify_settings import WebhookSettings, webhook_problem

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    """The address of a receiver that reads a request and then answers like this."""

    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _repeat(writer: asyncio.StreamWriter, piece: bytes, *, pause: float = 0.0) -> None:
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
    await _repeat(writer, b"x", pause=0.01)


async def continues(writer: asyncio.StreamWriter) -> None:
    await _repeat(writer, b"HTTP/1.1 103 Early Hints\r\n\r\n")


async def endless_headers(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    await _repeat(writer, b"x-more: " + b"x" * 1000 + b"\r\n")


async def silence(_: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("answer", [drip, continues, endless_headers, silence])
async def test_a_receiver_that_never_finishes_its_answer(answer: Answer) -> None:
    async with answering(answer) as url:
        poster = HttpPoster(allow_private=True, seconds=0.5)
        result = await poster.post(url, {}, b"{}")
        await poster.close()
    assert isinstance(result, TryAgain)


async def test_the_body_of_an_answer_is_not_read() -> None:
    async def endless_body(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await _repeat(writer, b"x" * 65_536)

    async with answering(endless_body) as url:
        poster = HttpPoster(allow_private=True)
        assert await poster.post(url, {}, b"{}") == HttpAnswer(200)
        await poster.close()


@pytest.mark.parametrize(
    "url",
    [
        *("https://", "https:///x", "https://host:99999/", "https://host:abc/", "https://host:0/", "https://[::1/"),
        *(
            "https://exa mple/",
            "https://a\r\nx: y/",
            "https://host/\u202e",
            "https://b\u00fccher.example/",
            "ftp://host/",
        ),
    ],
)
def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    assert webhook_problem(url, WebhookSettings()).startswith("is no address")


@pytest.mark.parametrize("url", ["https://me:hunter2@host/x", "https://hunter2@host/x", "https://host@127.0.0.1/x"])
def test_an_address_with_a_password_is_refused_and_not_repeated(url: str) -> None:
    problem = webhook_problem(url, WebhookSettings())
    assert "contains a user name or a password" in problem
    assert "hunter2" not in problem


async def test_a_name_that_cannot_be_one_of_a_host() -> None:
    poster = HttpPoster(allow_private=False)
    for host in ("a" * 300, "..."):
        assert isinstance(await poster.post(f"https://{host}/", {}, b"{}"), GiveUp)
    await poster.close()
