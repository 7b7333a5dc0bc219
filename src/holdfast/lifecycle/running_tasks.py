"""The running tasks of a session, and what happens to them when it is reset, archived or deleted."""

from __future__ import annotations

from holdfast.domain.commands import WhatRuns
from holdfast.domain.errors import Conflict
from holdfast.domain.events import AnyEvent, Record, task_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.task import TaskStopRequested
from holdfast.domain.reset import RunningTask
from holdfast.domain.text import duration
from holdfast.lifecycle.awake_clock import AwakeClock
from holdfast.schemas.tasks import TaskView
from holdfast.store.contract import Store, Write
from holdfast.store.rows import TaskRow
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.log import lifetime_set, stop_requested
from holdfast.tasks.queries import TaskQueries


class RunningTasks:
    """Lists, stops and keeps the running tasks of sessions."""

    def __init__(self, store: Store, task_queries: TaskQueries, tasks: CommandTasks, awake: AwakeClock) -> None:
        self._store = store
        self._task_queries = task_queries
        self._tasks = tasks
        self._awake = awake

    async def of_session(self, session: str) -> list[RunningTask]:
        """Return the running background tasks of a session, oldest first."""
        return [self._running(view) for view in await self._task_queries.running() if view.session == session]

    def _running(self, view: TaskView) -> RunningTask:
        return RunningTask(
            task=view.id,
            title=view.title,
            command=view.command,
            pid=view.pid,
            process=view.kind == "process",
            lifetime=view.lifetime,
            age_ms=max(0, view.duration_ms - self._awake.lost(view.started_at)),
            activity=view.activity,
            detail=view.activity_detail,
            evidence=view.activity_evidence,
            quiet_looks=view.quiet_looks,
        )

    async def stop_writes(self, stop: dict[str, str], keep: list[str], *, by: Actor) -> tuple[Write, ...]:
        """Return the writes that stop tasks, each with its reason, and that extend the lifetime of kept ones.

        They hold only if a task has not changed: one that has just ended is not stopped.
        """
        found: list[Write] = []
        for task, rule in stop.items():
            request = stop_requested(task, by=by, reason=rule)
            found += self._if_running(await self._store.task(task), request)
        for task in keep:
            row = await self._store.task(task)
            if row.lifetime in ("chapter", "session"):
                found += self._if_running(row, lifetime_set(task, "persist", by=by))
        return tuple(found)

    def _if_running(self, row: TaskRow, event: AnyEvent) -> list[Write]:
        if row.state != "running":
            return []
        return [Write(task_stream(row.id), (event,), expect=row.version)]

    def signal(self, records: tuple[Record, ...]) -> None:
        """Send signals to the tasks whose stops were committed."""
        for record in records:
            if isinstance(record.event, TaskStopRequested):
                self._tasks.signals.send(record.event.task)

    async def chosen_writes(self, session: str, choice: WhatRuns | None, *, by: Actor, what: str) -> tuple[Write, ...]:
        """Return the writes for a person's choice about running tasks; refuse if there are some and no choice."""
        running = await self.of_session(session)
        if not running:
            return ()
        if choice is None:
            raise running_tasks(running)
        if choice == "keep":
            return await self.stop_writes({}, [one.task for one in running], by=by)
        return await self.stop_writes({one.task: what for one in running if one.process}, [], by=by)


def running_tasks(running: list[RunningTask]) -> Conflict:
    """Return an error that lists the running tasks; the next request must say what happens to them."""
    lines = [f"{one.task} {one.title} ({_seen(one)}, {duration(one.age_ms)})" for one in running]
    message = f"{len(running)} still running in the background: {'; '.join(lines)}."
    return Conflict(message, hint="Choose what happens to them: `--running keep` or `--running stop`.")


def _seen(one: RunningTask) -> str:
    """Return a task's activity; a command that has just started has none yet."""
    return one.doing or ("activity unknown" if one.process else "an agent")
