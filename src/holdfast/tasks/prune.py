"""Pruning deletes tasks with their events, rows and files.

The deletion is first written as an event, then the files are removed; if the gateway is killed in between, the next
start removes them.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.clock import Clock
from holdfast.domain.errors import Conflict, NotFound, Rejected, VersionConflict
from holdfast.domain.events import SYSTEM, task_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.task import TaskOutcome
from holdfast.processes.supervisor import Supervisor
from holdfast.store.contract import Append, CommandKey, Store, Write
from holdfast.store.rows import EndedTask, TaskRow
from holdfast.tasks.log import pruned

AT_ONCE = 100
SHOWN = 500
"""How many tasks a preview lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Conditions for ended, unpinned tasks; those that meet all of them are deleted. Age counts from the end."""

    older_than_ms: int | None = None
    larger_than: int | None = None
    keep_last: int | None = None
    state: TaskOutcome | None = None


@dataclass(frozen=True, slots=True)
class Prunable:
    """An ended task that may be deleted."""

    ended: EndedTask
    bytes: int
    """The size of its files and events, without the search index."""
    row: TaskRow | None = None
    """Its row, if it is listed."""


def chosen(tasks: list[Prunable], rule: Rule, *, now: int) -> list[Prunable]:
    """Return the tasks that a rule deletes. `tasks` have ended and are given newest first."""
    found = []
    for place, task in enumerate(tasks):
        ended = task.ended
        old = rule.older_than_ms is None or now - ended.finished_at >= rule.older_than_ms
        large = rule.larger_than is None or ended.output_bytes - ended.dropped_bytes > rule.larger_than
        late = rule.keep_last is None or place >= rule.keep_last
        if old and large and late and rule.state in (None, ended.state):
            found.append(task)
    return found


class Pruning:
    """Deletes tasks."""

    def __init__(self, store: Store, supervisor: Supervisor, clock: Clock, *, shown: int = SHOWN) -> None:
        """`shown` is of how many tasks a preview has the whole rows."""
        self._shown = shown
        self._store = store
        self._supervisor = supervisor
        self._clock = clock

    async def preview(self, rule: Rule) -> list[Prunable]:
        """Return the tasks that a rule would delete, the first ones with their rows."""
        return await self.detailed(chosen(await self.ended(), rule, now=self._clock.now()))

    async def detailed(self, tasks: list[Prunable]) -> list[Prunable]:
        """Return these tasks, the first ones with their rows."""
        rows = await self._store.tasks_by_id([task.ended.id for task in tasks[: self._shown]])
        first = [replace(task, row=rows[task.ended.id]) for task in tasks[: self._shown] if task.ended.id in rows]
        return first + tasks[self._shown :]

    async def ended(self) -> list[Prunable]:
        """Return the tasks that may be pruned, newest first."""
        rows = await self._store.ended_tasks()
        tasks = [row.id for row in rows]
        events = await self._store.task_event_bytes(tasks)
        files = await asyncio.to_thread(lambda: {task: _on_disk(self._supervisor.root / task) for task in tasks})
        return [Prunable(row, events[row.id] + files[row.id]) for row in rows]

    async def prune(self, rule: Rule, *, by: Actor, command: CommandKey | None = None) -> list[Prunable]:
        """Delete tasks by a rule and return them."""
        if command is not None and await self._store.find_command(command) is not None:
            raise _already_done()
        return await self.remove(await self.preview(rule), by=by, command=command)

    async def remove(self, tasks: list[Prunable], *, by: Actor, command: CommandKey | None = None) -> list[Prunable]:
        """Delete tasks in batches and return them. A task that was pinned or resumed meanwhile is kept."""
        gone: list[Prunable] = []
        for start in range(0, len(tasks), AT_ONCE):
            some = await self._take(tasks[start : start + AT_ONCE], by=by, command=None if gone else command)
            for task in some:
                with suppress(NotFound):
                    await self._supervisor.remove(task.ended.id)
            if self._store.exchange is not None:
                await self._store.exchange.drop_copies([task.ended.id for task in some])
            gone += some
        return gone

    async def _take(self, tasks: list[Prunable], *, by: Actor, command: CommandKey | None) -> list[Prunable]:
        """Append the deletion of the tasks that have not changed, and return them."""
        while tasks:
            guards = [Write(task_stream(task.ended.id), (), expect=task.ended.version) for task in tasks]
            write = Write(SYSTEM, tuple(pruned(task.ended, bytes=task.bytes, by=by) for task in tasks))
            try:
                appended = await self._store.append(Append((write, *guards), self._clock.now(), command=command))
            except VersionConflict:
                tasks = [task for task in tasks if await self._unchanged(task.ended)]
                continue
            if appended.duplicate:  # the command id was used before, for other tasks
                raise _already_done()
            return tasks
        return []

    async def _unchanged(self, row: EndedTask) -> bool:
        try:
            return (await self._store.task(row.id)).version == row.version
        except Rejected:  # it has been pruned meanwhile
            return False


def _on_disk(directory: Path) -> int:
    """Return the size of the files on disk without holes."""
    try:
        found = [entry.stat(follow_symlinks=False) for entry in os.scandir(directory)]
    except OSError:  # it never had an output
        return 0
    return sum(min(one.st_size, one.st_blocks * 512) for one in found)


def _already_done() -> Conflict:
    hint = "Without `confirm`, a new request lists what would be deleted now."
    return Conflict("This prune was already carried out.", hint=hint)
