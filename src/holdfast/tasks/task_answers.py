"""Answers what other nodes ask about the commands of this one (`remote_tasks.py`)."""

from __future__ import annotations

import asyncio
import os
from typing import assert_never

import msgspec

from holdfast.domain.errors import HoldfastError, Rejected
from holdfast.store.rows import TaskRow
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.queries import TaskQueries
from holdfast.tasks.remote_tasks import (
    BeginThere,
    ReadOutput,
    ReadTail,
    SearchRunning,
    ShowTasks,
    StartThere,
    TaskRequest,
    WriteInput,
)


class TaskAnswers:
    """Carries out the requests of other nodes about commands of this node."""

    def __init__(self, queries: TaskQueries, tasks: CommandTasks) -> None:
        self._queries = queries
        self._tasks = tasks

    async def answer(self, request: TaskRequest) -> bytes:
        """Carry out a request; return the answer."""
        return msgspec.msgpack.encode(await self._carry_out(request))

    async def _carry_out(self, request: TaskRequest) -> object:
        match request:
            case ReadOutput(task=task, offset=offset, limit=limit, wait=wait):
                row = await self._queries.find(task)
                return await self._queries.wait_window(row, offset=offset, limit=limit, seconds=wait)
            case ReadTail(task=task, lines=lines, limit=limit):
                return await self._queries.tail(await self._queries.find(task), lines=lines, limit=limit)
            case WriteInput(task=task, data=data, close=close):
                return await self._queries.write(await self._queries.find(task), data, close=close)
            case ShowTasks(tasks=tasks):
                found = [await self._find(task) for task in tasks]
                return await self._queries.views([row for row in found if row is not None])
            case SearchRunning(text=text):
                return await self._queries.search_running(text)
            case BeginThere(task=task):
                self._tasks.follow_to_end(await self._queries.find(task))
                return None
            case StartThere(started=started, key=key):
                if not await asyncio.to_thread(os.path.isdir, started.cwd):
                    raise Rejected(f"{started.cwd} is not a directory on that node.")
                await self._tasks.start_command(started, command=key)
                return None
            case _ as never:
                assert_never(never)

    async def _find(self, task: str) -> TaskRow | None:
        try:
            return await self._queries.find(task)
        except HoldfastError:  # it was pruned
            return None
