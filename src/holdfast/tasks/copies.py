"""Copies of outputs for other nodes: in the database from the end of a command on, as much as is kept of the output."""

from __future__ import annotations

import asyncio

from holdfast.domain.task import AGENT_CALL
from holdfast.processes.command import HEAD_BYTES, TAIL_BYTES
from holdfast.processes.spool import OutputFile, Window
from holdfast.store.node_exchange import NodeExchange
from holdfast.store.rows import TaskRow

PIECE_BYTES = 1 << 18
LONGEST_TAIL = 2 * TAIL_BYTES
"""Of the end of an output a bit more than the tail is kept, by whole blocks."""


async def copy_output(exchange: NodeExchange, row: TaskRow, output: OutputFile) -> None:
    """Copy the output of an ended command, before others can see its end; of a long one the head and the tail."""
    at, size = 0, 0 if row.call == AGENT_CALL else await asyncio.to_thread(output.size)
    while at < size:
        if HEAD_BYTES <= at < size - LONGEST_TAIL:
            at = size - LONGEST_TAIL
        window = await asyncio.to_thread(output.read, at, PIECE_BYTES)
        if not window.data:
            return
        await exchange.copy_output(row.id, [(window.next - len(window.data), window.data)])
        at = window.next


async def read_copy(exchange: NodeExchange, row: TaskRow, *, offset: int, limit: int) -> Window | None:
    """Return a piece of the output of an ended command; None if there is no copy of it."""
    size = row.output_bytes
    if offset >= size:
        return Window(offset, 0, b"", size)
    found = await exchange.read_copy(row.id, offset)
    if found is None:
        return None
    start, data = found
    begin = max(start, offset)
    data = data[begin - start :]
    while len(data) < limit and begin + len(data) < size:
        following = await exchange.read_copy(row.id, begin + len(data))
        if following is None or following[0] != begin + len(data):
            break
        data += following[1]
    return Window(offset, begin - offset, data[:limit], size)
