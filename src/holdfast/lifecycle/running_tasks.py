"""What runs for a session, and what becomes of it when the session ends a chapter, is put away or deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.domain.commands import WhatRuns
from holdfast.domain.errors import Conflict
from holdfast.domain.events import AnyEvent, task_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.task import TaskStopRequested
from holdfast.domain.reset import RunningTask
from holdfast.lifecycle.awake_clock import AwakeClock
from holdfast.store.contract import Appended, Row, Store, Write
from holdfast.tasks.commands import Tasks
from holdfast.tasks.log import lifetime_set, stop_requested
from holdfast.tasks.queries import TaskQueries
from holdfast.tasks.views import TaskView, age

TRIES = 100


class RunningTasks:
    """One list for everybody: the same rows that people and agents see."""

    def __init__(self, store: Store, task_queries: TaskQueries, tasks: Tasks, awake: AwakeClock) -> None:
        self._store = store
        self._task_queries = task_queries
        self._tasks = tasks
        self._awake = awake

    async def of_session(self, session: str) -> list[RunningTask]:
        """Its background tasks that run now, oldest first."""
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
        """What is written into their tasks: who is stopped by which rule, and who outlives what it belonged to.

        Only if nothing happened to them since: one that has just ended is not stopped.
        """
        found: list[Write] = []
        for task, rule in stop.items():
            request = stop_requested(task, by=by, reason=rule)
            found += self._if_running(await self._store.task(task), request)
        for task in keep:
            row = await self._store.task(task)
            if row["lifetime"] in ("chapter", "session"):
                found += self._if_running(row, lifetime_set(task, "persist", by=by))
        return tuple(found)

    def _if_running(self, row: Row, event: AnyEvent) -> list[Write]:
        if row["state"] != "running":
            return []
        return [Write(task_stream(str(row["id"])), (event,), expect=int(str(row["version"])))]

    def signal(self, writes: tuple[Write, ...]) -> None:
        """After these were written: end those whose end is wanted."""
        for write in writes:
            if any(isinstance(event, TaskStopRequested) for event in write.events):
                self._tasks.signal(write.stream.removeprefix("task/"))

    async def execute_with_running(
        self,
        session: str,
        choice: WhatRuns | None,
        *,
        by: Actor,
        what: str,
        append: Callable[[tuple[Write, ...]], Awaitable[Appended]],
    ) -> Appended:
        """Do something to a session and, in the same append, what the choice means for what runs for it."""
        for _ in range(TRIES):
            also = await self._chosen(session, choice, by=by, what=what)
            try:
                appended = await append(also)
            except Conflict:
                if not await self._changed(also):
                    raise
                continue  # one of them has just ended
            self.signal(also)
            return appended
        raise Conflict("What runs changed too often in between.", hint="Try again.")

    async def _changed(self, writes: tuple[Write, ...]) -> bool:
        rows = [await self._store.task(write.stream.removeprefix("task/")) for write in writes]
        return any(row["version"] != write.expect for row, write in zip(rows, writes, strict=True))

    async def _chosen(self, session: str, choice: WhatRuns | None, *, by: Actor, what: str) -> tuple[Write, ...]:
        """What a person's choice means for what runs; without a choice, and with something running, a question."""
        running = await self.of_session(session)
        if not running:
            return ()
        if choice is None:
            raise running_tasks(running)
        if choice == "keep":
            return await self.stop_writes({}, [one.task for one in running], by=by)
        return await self.stop_writes({one.task: what for one in running if one.process}, [], by=by)


def running_tasks(running: list[RunningTask]) -> Conflict:
    """The question as a refusal: whoever asks again says what is to become of them."""
    lines = [f"{one.task} {one.title} ({_seen(one)}, {age(one.age_ms)})" for one in running]
    message = f"{len(running)} still running in the background: {'; '.join(lines)}."
    return Conflict(message, hint="Say what becomes of them: `keep` or `stop` (--running on the command line).")


def _seen(one: RunningTask) -> str:
    """A command that began a moment ago was not looked at yet."""
    return one.doing or ("activity unknown" if one.process else "an agent")
