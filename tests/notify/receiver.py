"""A receiver of webhooks on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Received:
    """A request."""

    path: str
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(slots=True)
class Receiver:
    """Keeps what it gets, and answers with `answer(request)`: a status, or a status and further header lines."""

    port: int = 0
    requests: list[Received] = field(default_factory=list)
    answer: Callable[[Received], tuple[int, str]] = lambda _: (204, "")
    hold: asyncio.Event | None = None
    """When set to an event, answers wait for it."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                headers: dict[str, str] = {}
                while (header := (await reader.readline()).decode().strip()) != "":
                    name, _, value = header.partition(":")
                    headers[name.lower()] = value.strip()
                content = await reader.readexactly(int(headers.get("content-length", 0)))
                request = Received(line.decode().split()[1], headers, content)
                self.requests.append(request)
                if self.hold is not None:
                    await self.hold.wait()
                status, more = self.answer(request)
                writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n{more}\r\n".encode())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiver(port: int = 0) -> AsyncIterator[Receiver]:
    """A receiver for as long as this lasts."""
    found = Receiver()
    server = await asyncio.start_server(found.serve, "127.0.0.1", port)
    found.port = int(server.sockets[0].getsockname()[1])
    try:
        yield found
    finally:
        server.close()
        server.close_clients() if hasattr(server, "close_clients") else None
