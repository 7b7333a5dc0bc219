"""Pruning: the only way in which a task leaves the archive. It shows what will go, then deletes events, rows, files.

The event comes first, then the files: whoever is killed in between leaves files whose task is gone, and the
next start removes them.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from holdfast.domain.errors import NotFound
from holdfast.domain.events import SYSTEM
from holdfast.domain.task import TaskOutcome, TaskPruned
from holdfast.processes.supervisor import Supervisor
from holdfast.runtime.clock import Clock
from holdfast.store.port import Append, CommandKey, Row, Store, Write

AT_ONCE = 100


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
        large = rule.larger_than is None or kept_bytes(row) > rule.larger_than
        late = rule.keep_last is None or place >= rule.keep_last
        if old and large and late and rule.state in (None, row["state"]):
            found.append(row)
    return found


def kept_bytes(row: Row) -> int:
    """What its output takes."""
    return int(str(row["output_bytes"])) - int(str(row["dropped_bytes"]))


class Pruning:
    """Deletes tasks."""

    def __init__(self, store: Store, supervisor: Supervisor, clock: Clock) -> None:
        self._store = store
        self._supervisor = supervisor
        self._clock = clock

    async def preview(self, rule: Rule) -> list[Row]:
        """What would go."""
        return chosen(await self._store.ended_tasks(), rule, now=self._clock.now())

    async def prune(self, rule: Rule, *, by: str, command: CommandKey | None = None) -> list[Row]:
        """Let it go."""
        rows = await self.preview(rule)
        await self.remove(rows, by=by, command=command)
        return rows

    async def remove(self, rows: list[Row], *, by: str, command: CommandKey | None = None) -> None:
        """These very tasks, some at a time."""
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            events = tuple(
                TaskPruned(
                    task=str(row["id"]), title=str(row["title"]), state=_outcome(row), bytes=kept_bytes(row), by=by
                )
                for row in some
            )
            key = command if start == 0 else None
            await self._store.append(Append((Write(SYSTEM, events),), self._clock.now(), command=key))
            for row in some:
                with contextlib.suppress(NotFound):
                    await self._supervisor.remove(str(row["id"]))


def _outcome(row: Row) -> TaskOutcome:
    match row["state"]:
        case "done" | "failed" | "stopped" | "lost" as state:
            return state
        case state:
            raise ValueError(f"a task that may be pruned is {state}")
