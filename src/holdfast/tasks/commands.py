"""Tasks that are shell commands: started under a keeper, found again after a restart, followed to their end, stopped.

    intent in the log → keeper → ProcessStarted … the command runs, with or without a gateway … TaskFinished

The intent names the task, and so the directory in which its keepers record everything that follows. So the beginning
of a command that a turn waits for need not be written at once; if it ends soon, both are one commit.

After a restart every task that is running by the log is looked up: it is followed again, or its end is written as its
keepers recorded it, or it is lost. A command that had not begun is started: the intent has all that a start needs, and
the claim file in its directory makes sure that it starts once. The command of a tool call begins with its call.
Not here: what is written when a task ends (`log.py`, `results.py`), how a process is kept (`processes`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.clock import Clock, wait_for_event
from holdfast.domain.errors import Conflict, Corrupt, HoldfastError, Unavailable
from holdfast.domain.events import task_stream
from holdfast.domain.events.actor import THE_RUNTIME, Actor
from holdfast.domain.events.task import ProcessStarted, TaskFinished, TaskStarted, TaskStopRequested
from holdfast.domain.task import task_of_left
from holdfast.processes.command import CommandSpec, CommandState, Lost, NeverStarted, Running
from holdfast.processes.supervisor import Supervisor
from holdfast.sessions import Sessions
from holdfast.store.contract import Appended, CommandKey, Store, Write
from holdfast.store.log_follower import LogFollower
from holdfast.store.rows import TaskRow
from holdfast.tasks.cleanup import clear_left_over, clear_pruned, remove_if_in_log
from holdfast.tasks.copies import copy_output
from holdfast.tasks.defaults import CommandDefaults, Environments
from holdfast.tasks.lifetimes import TaskLifetimes
from holdfast.tasks.log import (
    TaskLog,
    left_behind,
    lost,
    never_started,
    process_finished,
    process_started,
    stop_requested,
)
from holdfast.tasks.results import unwritten_pid
from holdfast.tasks.stop_signals import StopSignals
from holdfast.timings import USUAL, TaskTimings

KNOWN_SECONDS = 5.0  # how long a start waits to find out the state of all commands
SWEEP_SECONDS = 60.0
ENDS = frozenset({"TurnFinished", "SessionArchived", "SessionDeleted"})  # what may end the lifetime of a command
ELSEWHERE = ENDS | {"TaskStopRequested", "TaskPruned", "TaskStarted"}
"""Events of other nodes; and of this one, if the answer to its commit was lost, so that nothing here knows of it."""
log = logging.getLogger(__name__)


class CommandTasks:
    """The tasks of this home that are shell commands: starts them, follows them to their end, stops them."""

    def __init__(
        self,
        store: Store,
        *,
        task_log: TaskLog,
        supervisor: Supervisor,
        defaults: CommandDefaults,
        sessions: Sessions,
        clock: Clock,
        timings: TaskTimings = USUAL.tasks,
    ) -> None:
        self._timings = timings
        self.task_log = task_log
        self.supervisor = supervisor
        self._store = store
        self._lifetimes = TaskLifetimes(sessions, clock)
        self._clock = clock
        self.defaults = defaults
        self._starting: dict[str, asyncio.Task[Appended]] = {}
        """By task: the start that a caller of `start_command` waits for."""
        self._followed: dict[str, asyncio.Task[None]] = {}
        """By task: what follows its command until its end is in the log."""
        self._begin_requested: set[str] = set()
        """Followed tasks whose command is to begin if it is found not to have begun."""
        self.signals = StopSignals(supervisor, timings.stop_grace)
        self._ended_in_turn: dict[str, list[str]] = {}
        """By session: ended commands whose output may be in the results of its open turn, and so on disk twice."""
        self._environments = Environments(defaults.root)
        self._follower = LogFollower(
            store,
            self._react,
            wanted=lambda _, kind: kind in ENDS,
            name="the tasks",
            sweep=self._look_after_all,
            sweep_seconds=SWEEP_SECONDS,
            elsewhere=lambda _, kind: kind in ELSEWHERE,
        )
        self.state = self._follower.state
        self._remembered = task_log.changes.remembered()  # before anybody can start something new

    async def start(self) -> None:
        """Find out the state of every running task, and follow the log for turns and sessions that end."""
        await clear_left_over(
            self._store,
            self.task_log,
            self.supervisor,
            self._environments,
            remembered=self._remembered,
            root=self.defaults.root,
        )
        known = self._follow_all(await self.running_here())
        await self._follower.start()  # its first sweep finds what should have ended meanwhile
        await asyncio.gather(*(wait_for_event(event, within=KNOWN_SECONDS) for event in known))

    def _follow_all(self, rows: list[TaskRow]) -> list[asyncio.Event]:
        """Follow running commands that nobody follows; that of a tool call begins only when its call does."""
        others = [row for row in rows if row.id not in self._starting and row.id not in self._followed]
        return [self._follow(row, begin=not row.call) for row in others]

    def is_here(self, row: TaskRow) -> bool:
        """Whether a command was started from this home, whatever its node was called when it began."""
        return not self._store.is_shared or row.node == self._store.node or self.supervisor.has(row.id)

    async def running_here(self) -> list[TaskRow]:
        """The running commands of this node."""
        return [row for row in await self._store.running_tasks() if row.kind == "process" and self.is_here(row)]

    async def stop(self) -> None:
        """Stop following; the commands run on."""
        tasks: list[asyncio.Task[Any]] = [*self._starting.values(), *self._followed.values(), *self.signals.sending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(self._follower.stop(), *tasks, return_exceptions=True)
        await self.supervisor.close()

    # --- beginnings -----------------------------------------------------------------------------

    async def start_command(
        self, started: TaskStarted, *, env: Mapping[str, str] | None = None, command: CommandKey | None = None
    ) -> Appended:
        """Write the intent, then start the command, even if the caller is cancelled. A failed start ends the task.

        `env` is by default the gateway's own, without its keys.
        """
        started = msgspec.structs.replace(started, own_environment=env is not None, node=self._store.node)
        spec = self.defaults.spec(started, env)
        spec.check()
        starting = self._starting[spec.id] = asyncio.create_task(self._begin(spec, started, command))
        starting.add_done_callback(lambda _: self._starting.pop(spec.id, None))
        return await asyncio.shield(starting)

    async def _begin(self, spec: CommandSpec, started: TaskStarted, command: CommandKey | None) -> Appended:
        if started.own_environment:
            await self._environments.keep_beside_loop(spec.id, spec.env)
        appended = await self.task_log.start(started, command=command)
        if appended.duplicate:
            self._environments.drop(spec.id)
            row = await self.task_log.find(appended.stream.removeprefix("task/"))
            if row is not None:
                self.follow_to_end(row)
        else:
            await self._follow(await self._store.task(spec.id)).wait()
        return appended

    def intent(self, started: TaskStarted) -> Write:
        """Return the intent, which must be in the log before `follow_to_end`. `Rejected` if it cannot be started."""
        self.defaults.spec(started, None).check()
        here = msgspec.structs.replace(started, node=self._store.node)
        return Write(task_stream(started.task), (here,), expect=0)

    def follow_to_end(self, row: TaskRow) -> None:
        """Follow a running task to its end, unless it is followed already; start its command if that has not begun."""
        task = row.id
        if row.state != "running" or task in self._starting or not self.is_here(row):
            return
        following = self._followed.get(task)
        if following is None or following.done():
            self._follow(row)
        else:
            self._begin_requested.add(task)  # it is followed, perhaps without permission to begin

    async def _find_or_start(self, row: TaskRow, *, begin: bool) -> CommandState | None:
        """Return the state of a command, started if it has not begun; None if it is not to begin, or not now."""
        task = row.id
        if row.left_by:
            await self.supervisor.take_over(task, row.left_by, oldest=row.pid)
        if (self.defaults.root / task).exists():  # else no start was tried
            found = await self.supervisor.attach(task)
            if not (isinstance(found, NeverStarted) and found.cancelled):
                return found
        if row.pid is not None:
            return Lost(task, f"it began as pid {row.pid}, and nothing in its directory says how it ended")
        row = await self._store.task(task)
        if task not in self._starting and (unwanted := await self._lifetimes.why_not_begin(row)):
            await self._finish(never_started(task, unwanted, outcome="stopped"))
            return None
        if not begin and task not in self._begin_requested:
            return None
        return await self._start(row)

    async def _start(self, row: TaskRow) -> CommandState | None:
        """Start a command whose intent is in the log; return None if it cannot be started."""
        task = row.id
        started = await self.task_log.started(task)
        env = await asyncio.to_thread(self._environments.read, task) if started.own_environment else None
        if started.own_environment and env is None:
            return NeverStarted(task, "the gateway was killed before it began, and its environment is lost")
        if not started.foreground:
            await self.task_log.changes.take(task, Path(started.cwd))
        try:
            return await self.supervisor.start(self.defaults.spec(started, env))
        except Conflict:
            return await self.supervisor.attach(task)
        except HoldfastError as error:
            await self._finish(never_started(task, error.message.rstrip("."), hint=error.hint))
            return None

    async def wait_started(self, task: str) -> TaskRow:
        """Wait until the command of a task has begun or never will; return the task."""
        with self._store.subscribe(task_stream(task)) as changes:
            while (row := await self._store.task(task)).state == "running" and row.pid is None:
                await changes.wait()
                changes.drain()
        return row

    async def wait_ended(self, task: str) -> TaskRow:
        """Wait until the end of a task is in the log; return the task."""
        with self._store.subscribe(task_stream(task)) as changes:
            while True:
                if (following := self._followed.get(task)) is not None:
                    await asyncio.wait({following})
                if (row := await self._store.task(task)).state != "running":
                    return row
                await changes.wait()
                changes.drain()

    async def request_stop(
        self, row: TaskRow, *, by: Actor, reason: str, force: bool, command: CommandKey | None = None
    ) -> Appended:
        """Stop a command: write the request, then send SIGTERM, then SIGKILL."""
        task = row.id
        if row.state != "running":
            left = await self.task_log.find(task_of_left(task))  # the processes that it left are a task of their own
            if left is None or left.state != "running":
                raise Conflict(f"Task {task} has already ended: {row.state}, {row.reason}.")
            task, row = left.id, left
        event = stop_requested(task, by=by, reason=reason, force=force)
        appended = await self.task_log.add(event, command=command)
        self._send_stop(row, force=force)
        return appended

    def _send_stop(self, row: TaskRow, *, force: bool) -> None:
        if self.is_here(row):  # else its own node does that
            self.signals.send(row.id, force=force)
            self.follow_to_end(row)  # else nothing would write the end of one that has not begun

    def _follow(self, row: TaskRow, *, begin: bool = True) -> asyncio.Event:
        """Follow a task to its end; return an event that is set once it is known to run or to be over."""
        task, known = row.id, asyncio.Event()
        following = asyncio.create_task(self._follow_task(row, begin=begin, known=known), name=f"task {task}")
        self._followed[task] = following
        following.add_done_callback(lambda _: self._forget(task, following))
        following.add_done_callback(lambda _: known.set())
        if row.stop_by:
            self.signals.send(task, force=False)
        if row.until is not None:
            its_time = self._stop_at(task, row.until)
            timer = asyncio.create_task(its_time, name=f"the time of task {task}")
            following.add_done_callback(lambda _: timer.cancel())
        return known

    def _forget(self, task: str, following: asyncio.Task[None]) -> None:
        if self._followed.get(task) is following:
            del self._followed[task]
            self._begin_requested.discard(task)

    async def _stop_at(self, task: str, until: int) -> None:
        """Stop a task at this time of the wall clock; the loop's own clock stops while the machine sleeps."""
        while (now := self._clock.now()) < until:
            left = (until - now) / 1000
            await asyncio.sleep(min(left, self._timings.clock))
        await self._end_by_rule(task, "its time limit had passed")

    async def _end_by_rule(self, task: str, reason: str) -> None:
        async def end() -> None:
            await self.request_stop(await self._store.task(task), by=THE_RUNTIME, reason=reason, force=False)

        try:
            await self._write(end)
        except HoldfastError as error:
            log.info("task %s was not stopped: %s", task, error)

    async def _follow_task(self, row: TaskRow, *, begin: bool, known: asyncio.Event) -> None:
        """Follow a task, and try again after errors, so that it does not stay running in the log for ever."""
        while True:
            try:
                return await self._run_to_end(row, begin=begin, known=known)
            except Corrupt as error:
                return await self._finish(lost(row.id, error.message))
            except (Unavailable, OSError) as error:
                log.error("task %s cannot be followed now: %s", row.id, error)
                known.set()  # the start must not wait for a broken disk
                await asyncio.sleep(self._timings.retry)

    async def _run_to_end(self, row: TaskRow, *, begin: bool, known: asyncio.Event) -> None:
        task = row.id
        found = await self._find_or_start(row, begin=begin)
        if found is None:
            return
        began = [process_started(task, pid)] if (pid := unwritten_pid(row, found, self.supervisor)) else []
        if isinstance(found, Running):
            if (await self._store.task(task)).stop_by:  # the request may have come before there was a process to signal
                self.signals.send(task)
            if began and not (row.foreground and await self._ends_soon(found)):
                await self._write(lambda: self.task_log.begin(*began))
                self._environments.drop(task)
                began = []
            known.set()
            found = await self.supervisor.wait(task)
        await self.signals.wait(task)
        left = await self.supervisor.left_behind(task)
        row = await self._store.task(task)
        output, mask, seen = self.supervisor.output(task), self.task_log.profiles.mask, None
        if not (row.foreground or row.left_by):
            seen = await self.task_log.changes.changes_since(task, Path(row.cwd))
        finished = await asyncio.to_thread(process_finished, row, found, output=output, left=left, seen=seen, mask=mask)
        rest = left_behind(row, left, by=(await self.task_log.started(task)).by) if left else ()
        if self._store.exchange is not None:
            await copy_output(self._store.exchange, row, output)
        await self._finish(finished, *rest, began=began)
        if rest:
            self.follow_to_end(await self._store.task(task_of_left(task)))
        elif row.foreground:
            self._ended_in_turn.setdefault(row.session, []).append(task)
        if row.left_by:
            await remove_if_in_log(self._store, self.task_log, self.supervisor, row.left_by)

    async def _ends_soon(self, running: Running) -> bool:
        """Return whether it ends so soon that beginning and end can be one commit. Its keepers record both anyway."""
        age = self._clock.now() / 1000 - running.started_at
        try:
            async with asyncio.timeout(min(self._timings.soon, max(0.0, self._timings.soon - age))):
                await self.supervisor.wait(running.id)
        except TimeoutError:
            return False
        return True

    async def _finish(self, finished: TaskFinished, *also: Write, began: Sequence[ProcessStarted] = ()) -> None:
        await self._write(lambda: self.task_log.finish(finished, *also, began=began))
        self.task_log.changes.forget(finished.task)
        self._environments.drop(finished.task)
        log.info("task %s ended: %s, %s", finished.task, finished.outcome, finished.reason)

    async def _write(self, append: Callable[[], Awaitable[object]]) -> None:
        """Append, and try again while the disk is full: the keeper's record stays until this is written."""
        while True:
            try:
                await append()
                return
            except Unavailable as error:
                log.warning("a task's event waits for the disk: %s", error)
                await asyncio.sleep(self._timings.retry)

    # --- what ends with something else ----------------------------------------------------------

    async def _react(self, stream: str, kinds: set[str]) -> None:
        """Stop the commands of a turn or a session that ended, and those that somebody stops from another node."""
        if stream.startswith("task/"):
            await self._react_elsewhere(await self._store.task(stream.removeprefix("task/")), kinds)
            return
        if "TaskPruned" in kinds:
            await clear_pruned(self._store, self.supervisor, self.defaults.root)
        session = stream.removeprefix("session/")
        rows = await self.running_here()
        await self._stop_orphans([row for row in rows if kinds != {"TurnFinished"} or row.session == session])
        for task in self._ended_in_turn.pop(session, ()):
            await remove_if_in_log(self._store, self.task_log, self.supervisor, task)

    async def _react_elsewhere(self, row: TaskRow, kinds: set[str]) -> None:
        if row.kind != "process" or not self.is_here(row):  # what is stored of an agent as its command is its prompt
            return
        if "TaskStarted" in kinds:
            self._follow_all([row] if row.state == "running" else [])
        if "TaskStopRequested" in kinds:
            asked = [record.event for record in await self._store.load(task_stream(row.id), after=0)]
            self._send_stop(row, force=any(isinstance(event, TaskStopRequested) and event.force for event in asked))

    async def _look_after_all(self) -> None:
        await self._stop_orphans(await self.running_here())
        self._follow_all(await self.running_here())

    async def _stop_orphans(self, rows: list[TaskRow]) -> None:
        """Stop commands whose lifetime is over, unless somebody has stopped them."""
        for row in rows:
            begun = row.pid is not None or row.id in self._starting or row.id in self._followed
            if not row.stop_by and (reason := await self._lifetimes.why_over(row, begun=begun)):
                await self._end_by_rule(row.id, reason)
