"""The archive: what is written about tasks, and what a session is told when one ends.

The end of a task, the end of the turn that it was, and the note to whoever started it are one append: so
the note comes exactly once, also when the gateway is killed in between.
Not here: commands and how they are kept alive (`tasks.py`).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.domain.errors import Conflict, HoldfastError, Rejected
from holdfast.domain.events import AnyEvent, InputReceived, NoteReceived, TurnFinished, TurnStarted, session_stream
from holdfast.domain.session import Session, ToolResult, Turn
from holdfast.domain.task import (
    PREVIEW,
    TaskContinued,
    TaskEvent,
    TaskFinished,
    TaskKind,
    TaskStarted,
    note_of,
    task_stream,
)
from holdfast.runtime.changes import Changes
from holdfast.runtime.clock import Clock
from holdfast.store.port import Append, Appended, CommandKey, Row, Store, Write

WATCHED = frozenset({"read", "list", "search", "write", "edit", "question", "process", "delegate"})
"""Tools that say themselves which files they change."""


class Archive:
    """Writes to task streams."""

    def __init__(self, store: Store, clock: Clock, changes: Changes) -> None:
        self._store = store
        self._clock = clock
        self.changes = changes

    async def find(self, task: str) -> Row | None:
        """The task of exactly this id, if there is one."""
        try:
            return await self._store.task(task)
        except Rejected:
            return None

    async def begin(
        self, started: TaskStarted, *, command: CommandKey | None = None, also: tuple[Write, ...] = ()
    ) -> Appended:
        """Write the intent down. Conflict when there is such a task already."""
        write = Write(task_stream(started.task), (started,), expect=0)
        return await self._store.append(Append((write, *also), self._clock.now(), command=command))

    async def add(self, *events: TaskEvent, command: CommandKey | None = None) -> Appended:
        """One more thing that happened to a task."""
        write = Write(task_stream(events[0].task), events)
        return await self._store.append(Append((write,), self._clock.now(), command=command))

    async def finish(self, finished: TaskFinished) -> None:
        """Write the end down, and tell whoever started it."""
        while True:
            writes = await self._ending(finished)
            if not writes:
                return
            try:
                await self._store.append(Append(writes, self._clock.now()))
            except Conflict:
                if len(writes) == 1:
                    raise
                continue  # the session was deleted in this very moment
            return

    async def alongside(self, session: Session, events: tuple[AnyEvent, ...]) -> tuple[Write, ...]:
        """What else must be written when these events end or begin a turn that is a task."""
        turn = session.turn
        for event in events:
            match event:
                case TurnStarted(turn=number) if session.task:
                    row = await self.find(session.task)
                    if row is not None and row["state"] != "running":
                        await self.changes.remember(session.task, Path(session.cwd))
                        again = TaskContinued(task=session.task, turn=number)
                        return (Write(task_stream(session.task), (again,)),)
                case TurnFinished(outcome=outcome, reason=reason) if turn is not None and turn.task:
                    finished = TaskFinished(
                        task=turn.task,
                        outcome=outcome,
                        reason=reason,
                        evidence=f"turn {turn.number} of session {session.id}",
                        preview=" ".join(turn.said.split())[:PREVIEW],
                        summary=turn.said,
                        files=await self._files(session, turn),
                    )
                    return await self._ending(finished)
                case _:
                    pass
        return ()

    async def _files(self, session: Session, turn: Turn) -> list[str] | None:
        """What its tools say and what git sees; None when something ran that nobody could watch."""
        seen = await asyncio.to_thread(self.changes.since, turn.task, Path(session.cwd))
        used = {m.tool for m in session.messages if isinstance(m, ToolResult) and m.turn == turn.number}
        if seen is None and not used <= WATCHED:
            return None
        return sorted({*turn.files, *(seen or ())})

    async def _ending(self, finished: TaskFinished) -> tuple[Write, ...]:
        row = await self.find(finished.task)
        if row is None:  # pruned: nobody is left to be told
            return ()
        end = Write(task_stream(finished.task), (finished,))
        session = str(row["session"])
        if not session or row["foreground"] or not await self._exists(session):
            return (end,)
        kind: TaskKind = "agent" if row["kind"] == "agent" else "process"
        text = note_of(finished.task, str(row["title"]), finished, of=kind)
        told: AnyEvent = NoteReceived(text=text, task=finished.task)
        if row["notify"]:
            input = f"task-{finished.task}-{int(str(row['version'])) + 1}"
            told = InputReceived(input=input, text=text, mode="queue", by=f"task {finished.task}")
        return (end, Write(session_stream(session), (told,)))

    async def _exists(self, session: str) -> bool:
        try:
            return (await self._store.session(session))["id"] == session
        except HoldfastError:
            return False
