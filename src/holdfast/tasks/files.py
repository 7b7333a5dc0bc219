"""Exports agent tasks as files for people: answers and tool calls in `tasks/<id>/log.jsonl`, the last answer in
`summary.txt`.

The files follow the log, with the version of the last line as cursor: lines that are missing after a crash are added at
the next start. No part of Holdfast reads them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast.domain.errors import HoldfastError
from holdfast.domain.events import decode, session_stream
from holdfast.profiles import Profiles
from holdfast.sessions import Sessions
from holdfast.store.contract import Store
from holdfast.store.log_follower import LogFollower
from holdfast.store.reads import SessionCursor, TaskFilter
from holdfast.store.rows import TaskRow
from holdfast.tasks.git_snapshots import GitSnapshots

PAGE = 500
SWEEP_SECONDS = 600.0
RECENT = 50
WRITTEN = frozenset({"ModelResponded", "ModelInterrupted", "ModelFailed", "ToolCallStarted", "ToolCallFinished"})
"""The kinds of events that `log.jsonl` holds."""
BOUNDS = frozenset({"TaskStarted", "TaskResumed", "TaskFinished"})
LOG, SUMMARY = "log.jsonl", "summary.txt"
log = logging.getLogger(__name__)


class _Line(msgspec.Struct):
    version: int


class TaskFileExporter(LogFollower):
    """Writes the files of agent tasks; lines that are missing when it is stopped are added at the next start."""

    def __init__(self, store: Store, *, sessions: Sessions, changes: GitSnapshots, profiles: Profiles) -> None:
        super().__init__(
            store,
            self._react,
            wanted=self._is_written,
            name="the task files",
            sweep=self._catch_up,
            sweep_seconds=SWEEP_SECONDS,
        )
        self._sessions = sessions
        self._root = changes.root
        self._changes = changes
        self._profiles = profiles
        self._workers: dict[str, str] = {}
        self._written: dict[str, int] = {}
        """By task: the version of the last written line; if missing, it is read from the file."""

    def _is_written(self, stream: str, kind: str) -> bool:
        return kind in BOUNDS or (kind in WRITTEN and stream.removeprefix("session/") in self._workers)

    async def _react(self, stream: str, _kinds: set[str]) -> None:
        noun, _, id = stream.partition("/")
        if noun == "task":
            await self._update(await self._store.task(id))
        elif id in self._workers:
            await self._write(self._workers[id], id)

    async def _catch_up(self) -> None:
        recent = await self._store.tasks(TaskFilter(kind="agent"), before=SessionCursor(), limit=RECENT)
        for row in {row.id: row for row in (*recent, *await self._store.running_tasks())}.values():
            if row.kind == "agent" and (row.state == "running" or not (self._root / row.id / SUMMARY).exists()):
                with _log_errors(row.id):
                    await self._update(row)

    async def _update(self, row: TaskRow) -> None:
        task, worker = row.id, row.worker
        if row.kind != "agent":
            return
        if row.state == "running":
            self._workers[worker] = task
        await self._write(task, worker)
        if row.state != "running":
            self._workers.pop(worker, None)
            self._written.pop(task, None)
            await asyncio.to_thread(_replace, self._root / task / SUMMARY, row.summary)
            self._changes.forget(task)

    async def _write(self, task: str, worker: str) -> None:
        file = self._root / task / LOG
        after = self._written.pop(task, None)  # after a failure, the version is read from the file again
        if after is None:
            after = await asyncio.to_thread(_last_version, file)
        if after is None:
            turn = (await self._sessions.get(worker)).turn
            after = turn.started.version if turn is not None else 0
        while lines := (await self._store.read(session_stream(worker), after=after, limit=PAGE)).lines:
            after += len(lines)
            wanted = [line for line in lines if type(decode(line).event).__name__ in WRITTEN]
            masked = [self._profiles.mask(line.decode()).encode() for line in wanted]
            await asyncio.to_thread(_append, file, masked)
        self._written[task] = after


@contextlib.contextmanager
def _log_errors(task: str) -> Iterator[None]:
    """Log an error about one task, so that the others are still written."""
    try:
        with contextlib.suppress(HoldfastError):  # deleted or pruned meanwhile
            yield
    except (OSError, msgspec.MsgspecError) as error:
        log.error("the files of task %s are not up to date: %s", task, error)


def _last_version(file: Path) -> int | None:
    """Return the version of the last complete line; remove an incomplete line that a crash left."""
    try:
        with file.open("r+b") as stream:
            data = stream.read()
            whole = data[: data.rfind(b"\n") + 1]
            if len(whole) != len(data):
                stream.truncate(len(whole))
    except FileNotFoundError:
        return None
    last = whole.rstrip().rpartition(b"\n")[2]
    return msgspec.json.decode(last, type=_Line).version if last else None


def _append(file: Path, lines: list[bytes]) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    with file.open("ab") as stream:
        stream.write(b"".join(line + b"\n" for line in lines))


def _replace(file: Path, text: str) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(text, "utf-8")
    new.replace(file)
