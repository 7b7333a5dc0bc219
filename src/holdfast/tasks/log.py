"""The archive: what is written about tasks, and what a session is told when one ends.

The end of a task, the end of the turn that it was, and the note to whoever started it are one append: so
the note comes exactly once, also when the gateway is killed in between.
Not here: commands and how they are kept alive (`tasks.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.clock import Clock
from holdfast.domain.errors import Conflict, HoldfastError, Rejected
from holdfast.domain.events import AnyEvent, session_stream, task_stream
from holdfast.domain.events.actor import TaskActor
from holdfast.domain.events.session import InputReceived, NoteReceived, TurnStarted
from holdfast.domain.events.task import TaskEvent, TaskFinished, TaskKind, TaskResumed, TaskStarted, TurnEnded
from holdfast.domain.history import ToolResult
from holdfast.domain.next_step import Finish
from holdfast.domain.queue import QUEUE_LIMIT
from holdfast.domain.session import Session, Turn
from holdfast.domain.task import PREVIEW, end_note
from holdfast.secrets import NO_SECRETS
from holdfast.store.contract import Append, Appended, CommandKey, Row, Store, Write
from holdfast.tasks.git_snapshots import GitSnapshots

WATCHED = frozenset({"read", "list", "search", "write", "edit", "question", "process", "delegate", "recall", "inbox"})
BOARD = "kanban_"
"""Tools that change no files, or say themselves which."""


class TaskLog:
    """Writes to task streams."""

    def __init__(
        self, store: Store, clock: Clock, changes: GitSnapshots, hide: Callable[[str], str] = NO_SECRETS.mask
    ) -> None:
        self._store = store
        self._clock = clock
        self._hide = hide
        """A text without the secret values that are known."""
        self.changes = changes

    async def find(self, task: str) -> Row | None:
        """The task of exactly this id, if there is one."""
        try:
            return await self._store.task(task)
        except Rejected:
            return None

    async def output(self, task: str) -> str | None:
        """What an ended command printed, if that is in the log itself."""
        records = await self._store.load(task_stream(task), after=0)
        last = next((r.event for r in reversed(records) if isinstance(r.event, TaskFinished)), None)
        return None if last is None else last.output

    async def started(self, task: str) -> TaskStarted:
        """The intent of a task."""
        first = (await self._store.load(task_stream(task), after=0))[0].event
        assert isinstance(first, TaskStarted)
        return first

    async def start(
        self, started: TaskStarted, *, command: CommandKey | None = None, also: tuple[Write, ...] = ()
    ) -> Appended:
        """Write the intent down. Conflict when there is such a task already."""
        write = Write(task_stream(started.task), (started,), expect=0)
        return await self._store.append(Append((write, *also), self._clock.now(), command=command))

    async def add(self, *events: TaskEvent, command: CommandKey | None = None, expect: int | None = None) -> Appended:
        """One more thing that happened to a task."""
        write = Write(task_stream(events[0].task), events, expect=expect)
        return await self._store.append(Append((write,), self._clock.now(), command=command))

    async def finish(self, finished: TaskFinished, *also: Write) -> None:
        """Write the end down, and tell whoever started it. Once: a commit that was in doubt may have happened."""
        while True:
            row = await self.find(finished.task)
            if row is None or row["state"] != "running":
                return
            with suppress(Conflict):  # it was detached or its session deleted in this very moment: look again
                writes = (*await self._ending(finished, row), *also)
                await self._store.append(Append(writes, self._clock.now()))
                return

    async def turn_started(self, session: Session, event: TurnStarted) -> list[Write]:
        """What is written with the start of a turn: the session's task goes on, if it had ended."""
        row = await self.find(session.task) if session.task else None
        if row is None or row["state"] == "running":
            return []
        await self.changes.take(session.task, Path(session.cwd))
        return [Write(task_stream(session.task), (TaskResumed(task=session.task, turn=event.turn),))]

    async def turn_finished(self, session: Session, finish: Finish) -> list[Write]:
        """What is written with the end of a turn that is a task: the end of that task, and the note about it."""
        turn = session.turn
        row = await self.find(turn.task) if turn is not None and turn.task else None
        if turn is None or row is None:  # no task, or it was pruned
            return []
        said = self._hide(turn.said)
        finished = TaskFinished(
            task=turn.task,
            outcome=finish.outcome,
            reason=finish.reason,
            end=TurnEnded(session=session.id, turn=turn.number),
            preview=" ".join(said.split())[:PREVIEW],
            summary=said,
            files=await self._files(session, turn),
        )
        return [*await self._ending(finished, row)]

    async def _files(self, session: Session, turn: Turn) -> list[str] | None:
        """What its tools say and what git sees. None when nothing is known: a command ran that nobody could watch."""
        seen = await asyncio.to_thread(self.changes.changes_since, turn.task, Path(session.cwd))
        used = {m.tool for m in session.messages if isinstance(m, ToolResult) and m.turn == turn.number}
        unwatched = {tool for tool in used - WATCHED if not tool.startswith(BOARD)}
        if seen is None and unwatched and not turn.files:
            return None
        return sorted({*turn.files, *(seen or ())})

    async def _ending(self, finished: TaskFinished, row: Row) -> tuple[Write, ...]:
        """The end, and the note. Only if nothing happened to the task since: who is told depends on that."""
        end = Write(task_stream(finished.task), (finished,), expect=int(str(row["version"])))
        session = str(row["session"])
        parent = await self._session(session) if session and not row["foreground"] else None
        if parent is None:
            return (end,)
        kind: TaskKind = "agent" if row["kind"] == "agent" else "process"
        text = end_note(finished.task, str(row["title"]), finished, of=kind)
        told: AnyEvent = NoteReceived(text=text, task=finished.task)
        room = int(str(parent["queued"])) < QUEUE_LIMIT
        if row["notify"] and room and not parent["archived"]:  # what was put away does not wake up by itself
            input = f"task-{finished.task}-{int(str(row['version'])) + 1}"
            told = InputReceived(
                input=input, text=text, mode="queue", by=TaskActor(task=finished.task), source="task", ref=finished.task
            )
        return (end, Write(session_stream(session), (told,)))

    async def _session(self, session: str) -> Row | None:
        try:
            row = await self._store.session(session)
        except HoldfastError:
            return None
        return row if row["id"] == session else None
