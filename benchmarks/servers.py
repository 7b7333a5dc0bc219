"""Children that serve: the raw socket, the plain uvicorn application, and our gateway with a door to its store.

`raw FILE`      sends the lines of a file to whoever asks: `/each` one write a line, `/bulk` one write in all
`plain`         a WebSocket application on uvicorn: a queue for each client, a frame for each event
`gateway HOME`  the real gateway; {"burst": n, "stream": …} appends n events from inside
`plain` and `gateway` answer each burst with the moment at which it began.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import uvicorn
from tests.actors import person

from benchmarks.children import free_port
from benchmarks.workload import now
from holdfast.app import serve
from holdfast.config import Home
from holdfast.domain.events.session import SessionRenamed
from holdfast.store.contract import Append, Store, Write
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import StoreTimings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
Burst = Callable[[dict[str, Any]], Awaitable[None]]
TITLE = "t" * 150
"""Makes an event of about 270 bytes."""


def tell(**answer: object) -> None:
    """One line."""
    print(json.dumps(answer), flush=True)


def listen_to_parent(burst: Burst) -> None:
    """Do what the parent says, and end when it ends."""
    running: set[asyncio.Task[None]] = set()

    async def begin(line: bytes) -> None:
        at = time.monotonic()
        await burst(json.loads(line))
        tell(at=at)

    def on_line() -> None:
        line = sys.stdin.buffer.readline()
        if not line:
            asyncio.get_running_loop().remove_reader(0)
            return
        task = asyncio.create_task(begin(line))
        running.add(task)
        task.add_done_callback(running.discard)

    asyncio.get_running_loop().add_reader(0, on_line)


# --- raw ------------------------------------------------------------------------------------------


async def raw(file: Path) -> None:
    """A socket server that has everything in memory."""
    lines = file.read_bytes().splitlines(keepends=True)
    everything = b"".join(lines)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        for piece in [everything] if b"/bulk" in request else lines:
            writer.write(piece)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", 0)
    tell(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


# --- plain ----------------------------------------------------------------------------------------


class Plain:
    """What a WebSocket application usually looks like."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[str]] = set()
        self._version = 0

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._queues.add(queue)
        while True:
            await send({"type": "websocket.send", "text": await queue.get()})

    async def burst(self, message: dict[str, Any]) -> None:
        """Hand every event to every client."""
        for _ in range(message["burst"]):
            self._version += 1
            event = f'{{"events":[{{"kind":"Plain","title":"{TITLE + "t" * 80}"}}],"cursor":{self._version}}}'
            for queue in self._queues:
                queue.put_nowait(event)


async def plain() -> None:
    """The application on the same kind of uvicorn that we use."""
    app, port = Plain(), free_port()
    config = uvicorn.Config(
        app, port=port, ws="websockets-sansio", ws_per_message_deflate=False, lifespan="off", log_level="error"
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    listen_to_parent(app.burst)
    tell(port=port)
    await serving


# --- gateway --------------------------------------------------------------------------------------


def gateway(home: Home) -> int:
    """Our own, unchanged, but for a door to its store."""
    port = free_port()

    async def open_store(path: Path, timings: StoreTimings) -> Store:
        store = SqliteStore(path, timings)

        async def burst(message: dict[str, Any]) -> None:
            event = SessionRenamed(title=TITLE, by=person("bench"))
            write = Append((Write(message["stream"], (event,)),), now())
            await asyncio.gather(*(store.append(write) for _ in range(message["burst"])))

        listen_to_parent(burst)
        return store

    tell(port=port)
    return serve(home, port=port, background=True, open_store=open_store)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["raw", file]:
            asyncio.run(raw(Path(file)))
        case ["plain"]:
            asyncio.run(plain())
        case ["gateway", home]:
            sys.exit(gateway(Home(Path(home))))
        case _:
            sys.exit(__doc__)
