"""A proxy that cuts connections at random bytes, in either direction, without closing them properly."""

from __future__ import annotations

import asyncio
import random
from types import TracebackType
from typing import Self


class CuttingProxy:
    """Each connection gets a budget of bytes; at its last byte both sides are reset."""

    def __init__(self, target: int, rng: random.Random, *, most: int) -> None:
        self.target = target
        self.cuts = 0
        self._rng = rng
        self._most = most
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        up_writer: asyncio.StreamWriter | None = None
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
            there, back = self._budgets()
            pumps = {
                asyncio.create_task(_pump(reader, up_writer, there)),
                asyncio.create_task(_pump(up_reader, writer, back)),
            }
            done, pending = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pending:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self.cuts += any(pump.result() for pump in done)
        except OSError:
            pass
        finally:
            self._open.discard(task)
            for end in (writer, up_writer):
                if end is not None:
                    end.transport.abort()

    def _budgets(self) -> tuple[int, int]:
        """One cut in eight is already in the request. Small budgets are as likely as large ones."""
        if self._rng.random() < 0.125:
            return self._rng.randint(0, 200), 1 << 60
        return 1 << 60, int(self._most ** self._rng.random())


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: int) -> bool:
    """Pass bytes on; True when the budget is used up, False when a side closed by itself."""
    try:
        while budget > 0:
            piece = await reader.read(min(budget, 65536))
            if not piece:
                return False
            budget -= len(piece)
            writer.write(piece)
            await writer.drain()
    except OSError:
        return False
    return True
