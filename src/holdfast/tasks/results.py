"""How a command ended, as it is written down: the verdict, the sizes, its last lines, all of a small output.

A known secret value that it printed does not go into the log. Its file keeps what was written: an output with
such a value stays there, however small it is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import assert_never

import msgspec

from holdfast.domain.events import task_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.task import (
    CommandExited,
    CommandKilled,
    CommandLost,
    CommandNeverStarted,
    Lifetime,
    ProcessStarted,
    TaskEnd,
    TaskFinished,
    TaskOutcome,
    TaskStarted,
)
from holdfast.domain.task import INLINE, NEVER_STARTED, PREVIEW, command_outcome, task_of_left, task_title
from holdfast.processes.command import CommandOutcome, Ended, Lost, NeverStarted
from holdfast.processes.kill import Member
from holdfast.processes.spool import Output
from holdfast.store.contract import Row, Write
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.plain_text import plain
from holdfast.tasks.views import signal_name, stopper

PREVIEW_BYTES = 4096
Hide = Callable[[str], str]
"""A text without the secret values that are known."""


def finish_process(
    row: Row, end: CommandOutcome, *, output: Output, left: tuple[Member, ...], changes: GitSnapshots, hide: Hide
) -> TaskFinished:
    """The event. `left` are the processes that are still there."""
    task = str(row["id"])
    stopped = f"stopped by {stopper(row)}" if row["stop_by"] else ""
    code, name, evidence, lost, at = None, "", "", "", None
    match end:
        case NeverStarted(reason=why):
            return never_started(task, why)
        case Ended():
            code, name = end.code, "" if end.signal is None else signal_name(end.signal)
            evidence = f"recorded by its {end.by}"
            at = None if end.finished_at is None else int(end.finished_at * 1000)
        case Lost():
            evidence = lost = end.evidence
        case _ as never:
            assert_never(never)
    if output.problem:
        evidence += f"; {output.problem}"
    outcome, reason = command_outcome(code=code, signal=name, lost=lost, stopped=stopped)
    size = output.size()
    return TaskFinished(
        task=task,
        outcome=outcome,
        reason=reason,
        end=_end(code, name, evidence),
        ended_at=at,
        output_bytes=size,
        dropped_bytes=output.read(output.head, 1).dropped if size > output.head else 0,
        preview=hide(plain(output.tail(3, PREVIEW_BYTES).data)).strip()[-PREVIEW:],
        output=_all_of(output, hide) if row["foreground"] else None,
        files=None if row["foreground"] or row["left_by"] else changes.changes_since(task, Path(str(row["cwd"]))),
        survivors=[f"{one.pid} {one.name}" for one in left],
    )


def never_started(task: str, cause: str, *, outcome: TaskOutcome = "failed", hint: str = "") -> TaskFinished:
    """The end of a command that did not run at all."""
    end = CommandNeverStarted(cause=cause, hint=hint)
    return TaskFinished(task=task, outcome=outcome, reason=f"{NEVER_STARTED}: {cause}", end=end, files=[])


def lost(task: str, evidence: str) -> TaskFinished:
    """The end of a command that nobody saw."""
    return TaskFinished(task=task, outcome="lost", reason=evidence, end=CommandLost(evidence=evidence), files=None)


def _end(code: int | None, signal: str, evidence: str) -> TaskEnd:
    if signal:
        return CommandKilled(signal=signal, evidence=evidence)
    return CommandLost(evidence=evidence) if code is None else CommandExited(code=code, evidence=evidence)


def left_behind_write(row: Row, left: tuple[Member, ...], *, by: Actor) -> tuple[Write, ...]:
    """What a command left behind, as a task of its own with the lifetime of that command; nothing if nobody is left."""
    if not left or row["left_by"]:
        return ()
    task = task_of_left(str(row["id"]))
    started = TaskStarted(
        task=task,
        task_kind="process",
        title=task_title(f"left by {row['title']}"),
        command=str(row["command"]),
        argv=msgspec.json.decode(str(row["argv"]), type=list[str]),
        cwd=str(row["cwd"]),
        by=by,
        session=str(row["session"]),
        lifetime=msgspec.convert(row["lifetime"], Lifetime),
        until=None if row["until"] is None else int(str(row["until"])),
        left_by=str(row["id"]),
    )
    return (Write(task_stream(task), (started, ProcessStarted(task=task, pid=left[0].pid)), expect=0),)


def _all_of(output: Output, hide: Hide) -> str | None:
    """The whole output, if the log can have it."""
    if output.size() > INLINE:
        return None
    try:
        text = output.read(0, INLINE).data.decode()
    except UnicodeDecodeError:
        return None
    return text if hide(text) == text else None
