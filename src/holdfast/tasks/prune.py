"""Pruning: the only way in which a task leaves the archive. It shows what will go, then deletes events, rows, files.

The event comes first, then the files: whoever is killed in between leaves files whose task is gone, and the
next start removes them.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.clock import Clock
from holdfast.domain.errors import Conflict, NotFound, Rejected, VersionConflict
from holdfast.domain.events import SYSTEM, task_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.task import TaskOutcome
from holdfast.processes.supervisor import Supervisor
from holdfast.store.contract import Append, CommandKey, Row, Store, Write
from holdfast.tasks.log import pruned

AT_ONCE = 100
SHOWN = 500
"""So many of the tasks that go are shown one by one."""
TAKES = "takes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What goes: ended, not pinned, and all of this holds. Age counts from the end."""

    older_than_ms: int | None = None
    larger_than: int | None = None
    keep_last: int | None = None
    state: TaskOutcome | None = None


def chosen(rows: list[Row], rule: Rule, *, now: int) -> list[Row]:
    """Which of the ended tasks, given newest first, a rule takes."""
    found = []
    for place, row in enumerate(rows):
        old = rule.older_than_ms is None or now - int(str(row["finished_at"])) >= rule.older_than_ms
        large = rule.larger_than is None or _output_bytes(row) > rule.larger_than
        late = rule.keep_last is None or place >= rule.keep_last
        if old and large and late and rule.state in (None, row["state"]):
            found.append(row)
    return found


def _output_bytes(row: Row) -> int:
    return int(str(row["output_bytes"])) - int(str(row["dropped_bytes"]))


def kept_bytes(row: Row) -> int:
    """What a task takes: its files and its events, as `Pruning.ended` measured them."""
    return int(str(row[TAKES]))


class Pruning:
    """Deletes tasks."""

    def __init__(self, store: Store, supervisor: Supervisor, clock: Clock) -> None:
        self._store = store
        self._supervisor = supervisor
        self._clock = clock

    async def preview(self, rule: Rule) -> list[Row]:
        """What would go; the first ones as they are shown."""
        return await self.detailed(chosen(await self.ended(), rule, now=self._clock.now()))

    async def detailed(self, rows: list[Row]) -> list[Row]:
        """The same, the first ones with every column."""
        known = await self._store.tasks_by_id([str(row["id"]) for row in rows[:SHOWN]])
        first = [known[str(row["id"])] | row for row in rows[:SHOWN] if str(row["id"]) in known]
        return first + rows[SHOWN:]

    async def ended(self) -> list[Row]:
        """What may be pruned, newest first, each with what it takes. What search keeps of it is not counted."""
        rows = await self._store.ended_tasks()
        tasks = [str(row["id"]) for row in rows]
        events = await self._store.task_event_bytes(tasks)
        files = await asyncio.to_thread(lambda: {task: _on_disk(self._supervisor.root / task) for task in tasks})
        return [row | {TAKES: events[str(row["id"])] + files[str(row["id"])]} for row in rows]

    async def prune(self, rule: Rule, *, by: Actor, command: CommandKey | None = None) -> list[Row]:
        """Let it go; what went."""
        if command is not None and await self._store.find_command(command) is not None:
            raise _before()
        return await self.remove(await self.preview(rule), by=by, command=command)

    async def remove(self, rows: list[Row], *, by: Actor, command: CommandKey | None = None) -> list[Row]:
        """These very tasks, some at a time; those that went. One that was pinned or continued meanwhile stays."""
        gone: list[Row] = []
        for start in range(0, len(rows), AT_ONCE):
            some = await self._take(rows[start : start + AT_ONCE], by=by, command=None if gone else command)
            for row in some:
                with suppress(NotFound):
                    await self._supervisor.remove(str(row["id"]))
            gone += some
        return gone

    async def _take(self, rows: list[Row], *, by: Actor, command: CommandKey | None) -> list[Row]:
        """Write down that they go, if they still are as they were seen; which of them."""
        while rows:
            guards = [Write(task_stream(str(row["id"])), (), expect=int(str(row["version"]))) for row in rows]
            write = Write(SYSTEM, tuple(pruned(row, bytes=kept_bytes(row), by=by) for row in rows))
            try:
                appended = await self._store.append(Append((write, *guards), self._clock.now(), command=command))
            except VersionConflict:
                rows = [row for row in rows if await self._unchanged(row)]
                continue
            if appended.duplicate:  # these are not those that went then
                raise _before()
            return rows
        return []

    async def _unchanged(self, row: Row) -> bool:
        try:
            return (await self._store.task(str(row["id"])))["version"] == row["version"]
        except Rejected:  # somebody else has pruned it
            return False


def _on_disk(directory: Path) -> int:
    """The bytes of its files; of an output with a hole in it only what is there."""
    try:
        found = [entry.stat(follow_symlinks=False) for entry in os.scandir(directory)]
    except OSError:  # it never had one
        return 0
    return sum(min(one.st_size, one.st_blocks * 512) for one in found)


def _before() -> Conflict:
    hint = "What it took then is gone; what a new one would take is shown without `confirm`."
    return Conflict("This prune was carried out before.", hint=hint)
