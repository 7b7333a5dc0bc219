"""What the events of a task do to its row. See `projection.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from holdfast.domain.events import Record
from holdfast.domain.events.task import (
    CommandExited,
    CommandKilled,
    ProcessStarted,
    TaskBackgrounded,
    TaskEvent,
    TaskFinished,
    TaskLifetimeSet,
    TaskPinned,
    TaskResumed,
    TaskStarted,
    TaskStopRequested,
)
from holdfast.domain.task import end_evidence
from holdfast.store.rows import TaskRow

if TYPE_CHECKING:
    from holdfast.store.projection import ProjectedRows


def project_task(event: TaskEvent, id: str, record: Record, rows: ProjectedRows) -> None:
    """Change the row that one event is about."""
    if isinstance(event, TaskStarted):
        rows.add(_started(event, id, record))
    elif (row := rows.get(TaskRow, id)) is not None:
        rows.put(task_after(row, event, record))


def _started(event: TaskStarted, id: str, record: Record) -> TaskRow:
    return TaskRow(
        id=id,
        kind=event.task_kind,
        title=event.title,
        command=event.command,
        argv=event.argv,
        cwd=event.cwd,
        started_by=str(event.by),
        session=event.session,
        call=event.call,
        worker=event.worker,
        foreground=event.foreground,
        lifetime=event.lifetime,
        until=event.until,
        notify=event.notify,
        left_by=event.left_by,
        started_at=record.at,
        version=record.version,
        node=event.node,
    )


def task_after(row: TaskRow, event: TaskEvent, record: Record) -> TaskRow:
    """The row of a task after one of its events."""
    row = replace(row, version=record.version)
    match event:
        case TaskStarted():
            raise ValueError(f"task {row.id} was started before")
        case ProcessStarted():
            return replace(row, pid=event.pid)
        case TaskBackgrounded():
            return replace(row, foreground=False)
        case TaskResumed():
            return replace(row, state="running", finished_at=None, reason="", stop_by="", stop_reason="")
        case TaskLifetimeSet():
            return replace(row, lifetime=event.lifetime)
        case TaskStopRequested():
            if row.state != "running":  # it is about what an ended task left behind
                return row
            return replace(row, stop_by=str(event.by), stop_reason=event.reason)
        case TaskPinned():
            return replace(row, pinned=event.pinned)
        case TaskFinished():
            return _finished(row, event, record.at)
        case _ as never:
            assert_never(never)


def _finished(row: TaskRow, event: TaskFinished, at: int) -> TaskRow:
    """An agent that had nothing more to say has said what it said before."""
    return replace(
        row,
        state=event.outcome,
        finished_at=at if event.ended_at is None else event.ended_at,
        reason=event.reason,
        exit_code=event.end.code if isinstance(event.end, CommandExited) else None,
        signal=event.end.signal if isinstance(event.end, CommandKilled) else "",
        evidence=end_evidence(event.end),
        output_bytes=event.output_bytes,
        dropped_bytes=event.dropped_bytes,
        preview=event.preview,
        summary=event.summary or row.summary,
        files=event.files,
        survivors=event.survivors,
    )
