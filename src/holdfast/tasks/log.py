"""Builds and writes all events of tasks, and the notes about their ends for the sessions that started them.

The end of a task, the end of its turn and the note are one append, so the note is delivered exactly once, even if the
gateway is killed in between.
Not here: running commands (`commands.py`) and how the end of one is judged (`results.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.clock import Clock
from holdfast.domain.card import Card, Run
from holdfast.domain.errors import Conflict, HoldfastError, Rejected
from holdfast.domain.events import AnyEvent, session_stream, task_stream
from holdfast.domain.events.actor import THE_BOARD, Actor, AgentActor, TaskActor
from holdfast.domain.events.card import RunFinished
from holdfast.domain.events.parts import NotifyChoice
from holdfast.domain.events.session import InputReceived, NoteReceived, ToolCallFinished, TurnStarted
from holdfast.domain.events.task import (
    CommandLost,
    CommandNeverStarted,
    Lifetime,
    ProcessStarted,
    RunEnded,
    TaskBackgrounded,
    TaskEvent,
    TaskFinished,
    TaskKind,
    TaskLifetimeSet,
    TaskOutcome,
    TaskPinned,
    TaskPruned,
    TaskResumed,
    TaskStarted,
    TaskStopRequested,
    TaskTellSet,
    TurnEnded,
)
from holdfast.domain.history import ToolResult, UserMessage
from holdfast.domain.next_step import Finish
from holdfast.domain.queue import QUEUE_LIMIT
from holdfast.domain.session import Session, Turn
from holdfast.domain.task import NEVER_STARTED, PREVIEW, end_note, task_of_left, task_title
from holdfast.domain.task_commands import StartAgent, StartCommand
from holdfast.processes.command import CommandOutcome, NeverStarted
from holdfast.processes.kill import Member
from holdfast.processes.spool import OutputFile
from holdfast.profiles import Profiles
from holdfast.secrets import Mask
from holdfast.store.contract import Append, Appended, CommandKey, Store, Write
from holdfast.store.rows import EndedTask, SessionRow, TaskRow
from holdfast.tasks.git_snapshots import GitSnapshots, SeenChanges
from holdfast.tasks.results import command_result, summarise_output


class TaskLog:
    """Writes to task streams."""

    def __init__(self, store: Store, clock: Clock, changes: GitSnapshots, profiles: Profiles) -> None:
        self._store = store
        self._clock = clock
        self.changes = changes
        self.profiles = profiles

    async def find(self, task: str) -> TaskRow | None:
        """Return the task with exactly this id, if there is one."""
        try:
            return await self._store.task(task)
        except Rejected:
            return None

    async def output(self, row: TaskRow) -> bytes | None:
        """Return the output of an ended command if it is in the log, as the result of the call that waited for it."""
        for record in reversed(await self._store.load(task_stream(row.id), after=0)):
            if isinstance(record.event, TaskFinished) and record.event.output is not None:  # of an older version
                return record.event.output.encode()
        session = await self._store.load(session_stream(row.session), after=0) if row.call else []
        for record in reversed(session):
            if isinstance(record.event, ToolCallFinished) and record.event.call == row.call:
                return record.event.output.encode()[: row.output_bytes]
        return None

    async def started(self, task: str) -> TaskStarted:
        """Return the first event of a task."""
        first = (await self._store.load(task_stream(task), after=0))[0].event
        assert isinstance(first, TaskStarted)
        return first

    async def start(
        self, started: TaskStarted, *, command: CommandKey | None = None, also: tuple[Write, ...] = ()
    ) -> Appended:
        """Append the first event of a task. `Conflict` if the task exists."""
        write = Write(task_stream(started.task), (started,), expect=0)
        return await self._store.append(Append((write, *also), self._clock.now(), command=command))

    async def add(self, *events: TaskEvent, command: CommandKey | None = None, expect: int | None = None) -> Appended:
        """Append events to a task."""
        write = Write(task_stream(events[0].task), events, expect=expect)
        return await self._store.append(Append((write,), self._clock.now(), command=command))

    async def background(self, task: str, reason: str) -> TaskRow:
        """Move a task to the background and return it; nothing changes if it has just ended."""
        while (row := await self._store.task(task)).state == "running" and row.foreground:
            with suppress(Conflict):  # it has changed: read it again
                event = TaskBackgrounded(task=task, reason=reason)
                await self.add(event, expect=row.version)
        return row

    async def pin(self, task: str, *, pinned: bool, by: Actor, command: CommandKey | None = None) -> Appended:
        """Pin or unpin a task."""
        return await self.add(TaskPinned(task=task, pinned=pinned, by=by), command=command)

    async def set_notify(
        self, row: TaskRow, tell: NotifyChoice, *, by: Actor, command: CommandKey | None = None
    ) -> Appended:
        """Choose whether people are notified of its end; refused for runs of cards and turns of sessions."""
        if row.kind == "card":
            raise Conflict(f"Task {row.id} is a run of a card.", hint="Choose the notifications of the card.")
        if row.is_turn:
            hint = "Choose the notifications of the session."
            raise Conflict(f"Task {row.id} is a turn of session {row.worker}.", hint=hint)
        return await self.add(TaskTellSet(task=row.id, tell=tell, by=by), command=command)

    async def begin(self, began: ProcessStarted) -> None:
        """Append the start of a command, unless it is in the log or the task has ended."""
        while (row := await self.find(began.task)) is not None and row.state == "running" and row.pid is None:
            with suppress(Conflict):  # something else was written: read it again
                await self.add(began, expect=row.version)
                return

    async def finish(self, finished: TaskFinished, *also: Write, began: Sequence[ProcessStarted] = ()) -> None:
        """Append the end of a task with the note about it, unless the task has already ended.

        `began` is the start of its command, if that is not in the log yet.
        """
        while True:
            row = await self.find(finished.task)
            if row is None or row.state != "running":
                return
            with suppress(Conflict):  # it was detached, or its session was deleted: read it again
                writes = (*await self._ending(finished, row, began if row.pid is None else ()), *also)
                await self._store.append(Append(writes, self._clock.now()))
                return

    # --- tasks that are turns -------------------------------------------------------------------

    async def turn_started(self, session: Session, event: TurnStarted) -> list[Write]:
        """Return the writes for the start of a turn: the session's task is resumed if it had ended."""
        row = await self.find(session.task) if session.task else None
        if row is None or row.state == "running":
            return []
        await self.changes.take(session.task, Path(session.cwd))
        return [Write(task_stream(session.task), (TaskResumed(task=session.task, turn=event.turn),))]

    async def turn_finished(self, session: Session, finish: Finish, *, watched: Collection[str] = ()) -> list[Write]:
        """Return the writes for the end of a turn that is a task: the end of the task, and the note about it.

        `watched` are the tools that change no files, or that report which files they changed.
        """
        turn = session.turn
        row = await self.find(turn.task) if turn is not None and turn.task else None
        if turn is None or row is None:  # no task, or it was pruned
            return []
        said = self.profiles.mask(turn.said)
        seen = await self.changes.changes_since(turn.task, Path(session.cwd))
        finished = TaskFinished(
            task=turn.task,
            outcome=finish.outcome,
            reason=finish.reason,
            end=TurnEnded(session=session.id, turn=turn.number),
            preview=" ".join(said.split())[:PREVIEW],
            summary=said,
            files=changed_files(session, turn, seen, watched),
            base_commit="" if seen is None else seen.base_commit,
        )
        return [*await self._ending(finished, row)]

    async def _ending(
        self, finished: TaskFinished, row: TaskRow, began: Sequence[ProcessStarted] = ()
    ) -> tuple[Write, ...]:
        """Return the end and the note; they are written only if the task has not changed, since it decides the note."""
        end = Write(task_stream(finished.task), (*began, finished), expect=row.version)
        session = row.session
        parent = await self._session(session) if session and not row.foreground else None
        if parent is None:
            return (end,)
        kind: TaskKind = "agent" if row.kind == "agent" else "process"
        text = end_note(finished.task, row.title, finished, of=kind)
        note: AnyEvent = NoteReceived(text=text, task=finished.task)
        room = parent.queued < QUEUE_LIMIT
        if row.notify and room and not parent.archived:  # an archived session is not woken
            input = f"task-{finished.task}-{row.version + len(end.events)}"
            note = InputReceived(
                input=input, text=text, mode="queue", by=TaskActor(task=finished.task), source="task", ref=finished.task
            )
        return (end, Write(session_stream(session), (note,)))

    async def _session(self, session: str) -> SessionRow | None:
        try:
            row = await self._store.session(session)
        except HoldfastError:
            return None
        return row if row.id == session else None


# --- starts -----------------------------------------------------------------------------------


def command_started(
    command: StartCommand,
    *,
    task: str,
    cwd: str,
    by: Actor,
    session: str,
    foreground: bool = False,
    kept: tuple[int, int] | None = None,
) -> TaskStarted:
    """Return the first event of a command. `kept` is how many bytes of the head and tail of its output are kept."""
    shown = command.shell if command.shell is not None else " ".join(command.argv or [])
    head, tail = (None, None) if kept is None else kept
    return TaskStarted(
        task=task,
        task_kind="process",
        title=command.name or task_title(shown),
        command=shown,
        argv=command.argv or [],
        cwd=cwd,
        by=by,
        session=session,
        call=by.call if isinstance(by, AgentActor) else "",
        foreground=foreground,
        lifetime=command.lifetime,
        until=command.until,
        notify=command.notify,
        stdin=command.stdin,
        tell=command.tell,
        head=head,
        tail=tail,
    )


def agent_started(command: StartAgent, *, task: str, cwd: str, by: Actor, session: str) -> TaskStarted:
    """Return the first event of an agent task. Its session has the id of the task."""
    return TaskStarted(
        task=task,
        task_kind="agent",
        title=command.title or task_title(command.prompt),
        command=command.prompt,
        cwd=cwd,
        by=by,
        session=session,
        call=by.call if isinstance(by, AgentActor) else "",
        worker=task,
        notify=command.notify,
        tell=command.tell,
    )


def turn_backgrounded(session: Session, turn: Turn, *, task: str, by: Actor) -> TaskStarted:
    """Return the first event of the task that a running turn becomes."""
    said = [m.text for m in session.messages if isinstance(m, UserMessage) and m.turn == turn.number]
    asked = "\n".join(said)
    return TaskStarted(
        task=task,
        task_kind="agent",
        title=task_title(asked or session.title),
        command=asked,
        cwd=session.cwd,
        by=by,
        worker=session.id,
    )


def run_started(card: Card, *, task: str, session: str, cwd: str) -> Write:
    """Return the first event of the task of a card's run."""
    started = TaskStarted(
        task=task,
        task_kind="card",
        title=task_title(card.title),
        command=card.body or card.title,
        cwd=cwd,
        by=THE_BOARD,
        worker=session,
    )
    return Write(task_stream(task), (started,), expect=0)


def left_behind(row: TaskRow, left: tuple[Member, ...], *, by: Actor) -> tuple[Write, ...]:
    """Return the task of the processes that a command left behind, with the lifetime of that command."""
    if not left or row.left_by:
        return ()
    task = task_of_left(row.id)
    started = TaskStarted(
        task=task,
        task_kind="process",
        title=task_title(f"left by {row.title}"),
        command=row.command,
        argv=row.argv,
        cwd=row.cwd,
        by=by,
        session=row.session,
        lifetime=row.lifetime,
        until=row.until,
        node=row.node,
        left_by=row.id,
    )
    return (Write(task_stream(task), (started, process_started(task, left[0].pid)), expect=0),)


# --- what happens to a task -----------------------------------------------------------------------


def process_started(task: str, pid: int) -> ProcessStarted:
    """Return the start of a command's process."""
    return ProcessStarted(task=task, pid=pid)


def stop_requested(task: str, *, by: Actor, reason: str, force: bool = False) -> TaskStopRequested:
    """Return the request to stop a task."""
    return TaskStopRequested(task=task, by=by, reason=reason, force=force)


def lifetime_set(task: str, lifetime: Lifetime, *, by: Actor) -> TaskLifetimeSet:
    """Return the change of a task's lifetime."""
    return TaskLifetimeSet(task=task, lifetime=lifetime, by=by)


def pruned(row: EndedTask, *, bytes: int, by: Actor) -> TaskPruned:
    """Return the deletion of a task."""
    return TaskPruned(task=row.id, title=row.title, state=row.state, bytes=bytes, by=by)


# --- ends -----------------------------------------------------------------------------------------


def changed_files(session: Session, turn: Turn, seen: SeenChanges | None, watched: Collection[str]) -> list[str] | None:
    """Return the changed files according to tools and git; None if a tool ran whose changes are not known."""
    used = {m.tool for m in session.messages if isinstance(m, ToolResult) and m.turn == turn.number}
    if seen is None and not turn.files and not used <= {*watched}:
        return None
    return sorted({*turn.files, *(seen.files if seen is not None else ())})


def process_finished(
    row: TaskRow,
    end: CommandOutcome,
    *,
    output: OutputFile,
    left: tuple[Member, ...],
    seen: SeenChanges | None,
    mask: Mask,
) -> TaskFinished:
    """Return the end of a command. `left` are its processes that still run. Blocks: it reads its output."""
    task = row.id
    if isinstance(end, NeverStarted):
        return never_started(task, end.reason)
    result, summary = command_result(row, end, output_problem=output.problem), summarise_output(output, mask)
    return TaskFinished(
        task=task,
        outcome=result.outcome,
        reason=result.reason,
        end=result.end,
        ended_at=result.ended_at,
        output_bytes=summary.size,
        dropped_bytes=summary.dropped,
        preview=summary.preview,
        files=None if seen is None else seen.files,
        base_commit="" if seen is None else seen.base_commit,
        survivors=[f"{one.pid} {one.name}" for one in left],
    )


def never_started(task: str, cause: str, *, outcome: TaskOutcome = "failed", hint: str = "") -> TaskFinished:
    """Return the end of a command that never ran."""
    end = CommandNeverStarted(cause=cause, hint=hint)
    return TaskFinished(task=task, outcome=outcome, reason=f"{NEVER_STARTED}: {cause}", end=end, files=[])


def lost(task: str, evidence: str) -> TaskFinished:
    """Return the end of a command whose result is not known."""
    return TaskFinished(task=task, outcome="lost", reason=evidence, end=CommandLost(evidence=evidence), files=None)


def run_finished(card: Card, run: Run, ended: RunFinished, *, summary: str) -> Write:
    """Return the end of the task of a card's run."""
    outcomes: dict[str, TaskOutcome] = {"done": "done", "failed": "failed", "lost": "lost"}
    finished = TaskFinished(
        task=run.started.task,
        outcome=outcomes.get(ended.outcome, "stopped"),
        reason=ended.reason,
        end=RunEnded(card=card.id, run=run.number, card_number=card.number),
        preview=ended.reason[:PREVIEW],
        summary=summary,
        files=None,
    )
    return Write(task_stream(run.started.task), (finished,))
