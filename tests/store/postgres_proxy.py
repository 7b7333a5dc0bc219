"""Stands between a store and its PostgreSQL, and does what networks and poolers do."""

from __future__ import annotations

import asyncio
import struct
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.memory import SHORT
from tests.postgres_server import PostgresServer

SOCKET = ".s.PGSQL.5432"


class Proxy:
    """Passes everything on, until it is told otherwise. Only the connection that writes has a limit for locks."""

    def __init__(self, directory: Path, server: PostgresServer) -> None:
        self._directory = directory
        self._server = server
        self.swallow_commit = False
        """Cut the writer after its next commit has happened, and before it hears of that."""
        self.drop_commit = False
        """Cut the writer before the server gets what it wants to write."""
        self.is_pooler = False
        """Tell the client another process id than that of the server's process."""
        self.silent = asyncio.Event()
        """While it is set nothing is passed on."""
        self.cuts = 0
        self.refused = 0
        """How many connections were not accepted."""
        self._is_away = False
        self._connections: set[asyncio.Task[None]] = set()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._directory}"

    async def serve(self) -> asyncio.Server:
        return await asyncio.start_unix_server(self._accepted, self._directory / SOCKET)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_away:
            self.refused += 1
            writer.transport.abort()
            return
        connection = asyncio.create_task(self._pass_on(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        connection.add_done_callback(lambda _: writer.transport.abort())  # also if it was cancelled before it began

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sides, tasks = list[asyncio.StreamWriter](), list[asyncio.Task[None]]()
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(str(self._server.directory / SOCKET))
            sides.append(server_writer)
            start = await _start_packet(reader)
            server_writer.write(start)
            pair = _Pair(self, writes=b"lock_timeout" in start)
            tasks.append(asyncio.create_task(pair.from_client(reader, server_writer)))
            tasks.append(asyncio.create_task(pair.from_server(server_reader, writer)))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, asyncio.IncompleteReadError):  # one of them is gone
            return
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for side in sides:
                side.transport.abort()

    async def cut(self) -> None:
        """Close all connections; new ones are accepted."""
        for connection in [*self._connections]:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)  # so that the sockets are closed

    @contextmanager
    def away(self) -> Iterator[None]:
        """Accept no connection meanwhile."""
        self._is_away = True
        try:
            yield
        finally:
            self._is_away = False

    async def end(self) -> None:
        """Close all connections, and those that are about to come."""
        self._is_away = True
        await self.cut()


class _Pair:
    """One connection and the one behind it. An append is two trips; each ends with a `Z` of the server."""

    def __init__(self, proxy: Proxy, *, writes: bool) -> None:
        self._proxy = proxy
        self._writes = writes
        self._swallowing = False
        self._is_open = False
        """A transaction is open: the next trip writes and commits."""

    async def from_client(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            while self._proxy.silent.is_set():
                await asyncio.sleep(0.01)
            if self._writes and self._is_open and self._proxy.drop_commit:
                self._proxy.drop_commit = False
                self._proxy.cuts += 1
                return
            if self._writes and self._is_open and self._proxy.swallow_commit:
                self._swallowing = True
            server.write(data)
            await server.drain()

    async def from_server(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while True:
            try:
                kind, length = struct.unpack("!cI", await reader.readexactly(5))
                body = await reader.readexactly(length - 4)
            except asyncio.IncompleteReadError:
                return
            if kind == b"K" and self._proxy.is_pooler:
                body = struct.pack("!I", 1) + body[4:]
            if kind == b"Z":
                self._is_open = body == b"T"
                if self._swallowing:
                    self._proxy.swallow_commit = False
                    self._proxy.cuts += 1
                    return
            while self._proxy.silent.is_set():
                await asyncio.sleep(0.01)
            if not self._swallowing:
                client.write(struct.pack("!cI", kind, length) + body)
                await client.drain()


async def _start_packet(reader: asyncio.StreamReader) -> bytes:
    length = await reader.readexactly(4)
    return length + await reader.readexactly(struct.unpack("!I", length)[0] - 4)


@asynccontextmanager
async def proxy_of(server: PostgresServer) -> AsyncIterator[Proxy]:
    with tempfile.TemporaryDirectory(prefix="hf-px-", dir=SHORT) as directory:
        proxy = Proxy(Path(directory), server)
        listening = await proxy.serve()
        try:
            yield proxy
        finally:
            listening.close()
            await proxy.end()
