"""Projections: what each event does to the rows of the lists. Pure, and the same for every engine.

`project` reads the rows that an event is about, and puts the changed ones in their place. The engine keeps the rows of
a transaction and writes them in its commit; `doctor --rebuild` does the same over the whole log. An event about a row
that does not exist changes nothing.
"""

from __future__ import annotations

from typing import Protocol, TypeGuard, assert_never, get_args

from msgspec.structs import replace

from holdfast.domain.card import Board, CardPosition, position_after
from holdfast.domain.events import AnyEvent, Record
from holdfast.domain.events.card import (
    BoardArchived,
    BoardCreated,
    BoardEvent,
    BoardPaused,
    BoardResumed,
    CardBlocked,
    CardCommented,
    CardCompleted,
    CardCreated,
    CardEdited,
    CardEvent,
    CardFollowed,
    CardLinked,
    CardMoved,
    CardUnblocked,
    CardUnlinked,
    RunAssigned,
    RunFinished,
    RunHeartbeat,
    RunReminded,
    RunStarted,
)
from holdfast.domain.events.session import SessionEvent
from holdfast.domain.events.system import (
    GatewayStarted,
    GatewayStopped,
    NodeDrained,
    NodeEnded,
    SessionDeleted,
    StaleListed,
)
from holdfast.domain.events.task import (
    CommandExited,
    CommandKilled,
    ProcessStarted,
    TaskBackgrounded,
    TaskEvent,
    TaskFinished,
    TaskLifetimeSet,
    TaskPinned,
    TaskPruned,
    TaskResumed,
    TaskStarted,
    TaskStopRequested,
    TaskTellSet,
)
from holdfast.domain.task import end_evidence
from holdfast.store.rows import CardRow, R, Row, RunRow, TaskRow, WaitRow
from holdfast.store.session_projection import project_session

_SESSION_EVENTS = frozenset(get_args(SessionEvent))


class ProjectedRows(Protocol):
    """The rows as the open transaction sees them."""

    def get(self, row_type: type[R], *key: str | int) -> R | None:
        """The row with this key."""
        ...

    def open_wait(self, session: str) -> WaitRow | None:
        """The open wait of a session."""
        ...

    def add(self, row: Row) -> None:
        """A new row: that there is none with its key is checked when it is written."""
        ...

    def put(self, row: Row) -> None:
        """Replace the row that has the same key, which was read before."""
        ...

    def link(self, parent: str, child: str) -> None:
        """A card (`child`) waits for another."""
        ...

    def unlink(self, parent: str, child: str) -> None:
        """It no longer waits for that card."""
        ...

    def delete_session(self, session: str, *, at: int) -> None:
        """Delete the rows and the events of a session, and remember that it existed."""
        ...

    def delete_task(self, task: str, *, at: int) -> None:
        """The same of a task."""
        ...


def project(record: Record, rows: ProjectedRows) -> None:
    """Change the rows that one event is about."""
    event = record.event
    name = record.stream.partition("/")[2]
    if _is_session_event(event):
        project_session(event, name, record, rows)
        return
    match event:
        case SessionDeleted():
            rows.delete_session(event.session, at=record.at)
        case TaskPruned():
            rows.delete_task(event.task, at=record.at)
        case GatewayStarted() | GatewayStopped() | NodeDrained() | NodeEnded() | StaleListed():
            ...
        case _:
            if isinstance(event, TaskEvent):
                project_task(event, name, record, rows)
            elif isinstance(event, BoardEvent):
                project_board(event, record, rows)
            else:
                project_card(event, name, record, rows)  # type: ignore[arg-type]  # the type guard does not narrow here


def _is_session_event(event: AnyEvent) -> TypeGuard[SessionEvent]:
    return type(event) in _SESSION_EVENTS


# --- tasks --------------------------------------------------------------------------------------


def project_task(event: TaskEvent, id: str, record: Record, rows: ProjectedRows) -> None:
    """Change the row that one event is about."""
    if isinstance(event, TaskStarted):
        rows.add(_task_started(event, id, record))
    elif (row := rows.get(TaskRow, id)) is not None:
        rows.put(task_after(row, event, record))


def _task_started(event: TaskStarted, id: str, record: Record) -> TaskRow:
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
        tell=event.tell,
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
        case TaskTellSet():
            return replace(row, tell=event.tell)
        case TaskFinished():
            return _task_finished(row, event, record.at)
        case _ as never:
            assert_never(never)


def _task_finished(row: TaskRow, event: TaskFinished, at: int) -> TaskRow:
    """If an agent ends without a new text, its previous summary stays."""
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


# --- boards, cards and runs ---------------------------------------------------------------------


def project_board(event: BoardEvent, record: Record, rows: ProjectedRows) -> None:
    """Change the row that one event is about."""
    if isinstance(event, BoardCreated):
        rows.add(Board(event.board, event.title, record.at, record.version))
        return
    row = rows.get(Board, event.board)
    if row is None:
        return
    row = replace(row, version=record.version)
    match event:
        case BoardPaused():
            rows.put(replace(row, paused_by=str(event.by)))
        case BoardResumed():
            rows.put(replace(row, paused_by="", archived=False))
        case BoardArchived():
            rows.put(replace(row, archived=True))
        case _ as never:
            assert_never(never)


def project_card(event: CardEvent, id: str, record: Record, rows: ProjectedRows) -> None:
    """Change the rows that one event is about: the card, its links and its runs."""
    match event:
        case CardCreated():
            rows.add(_card_created(event, id, record))
            for parent in event.parents:
                rows.link(parent, id)
            return
        case CardLinked():
            rows.link(event.parent, id)
        case CardUnlinked():
            rows.unlink(event.parent, id)
        case RunStarted():
            rows.add(_run_started(event, id, record))
        case RunHeartbeat() | RunFinished():
            run = rows.get(RunRow, id, event.run)
            if run is not None:
                rows.put(run_after(run, event, record.at))
        case _:
            ...
    row = rows.get(CardRow, id)
    if row is not None:
        rows.put(card_after(row, event, record))


def _card_created(event: CardCreated, id: str, record: Record) -> CardRow:
    return CardRow(
        id=id,
        board=event.board,
        title=event.title,
        profile=event.profile,
        workspace=event.workspace,
        priority=event.priority,
        status=event.status,
        done=event.status == "done",
        created_by=str(event.by),
        root="" if event.rights is None else event.rights.ancestors[0],
        created_at=record.at,
        moved_at=record.at,
        updated_at=record.at,
        version=record.version,
        number=event.number,
        tell=event.tell,
        node=event.node,
    )


def card_after(row: CardRow, event: CardEvent, record: Record) -> CardRow:
    """The row of a card after one of its events."""
    position = position_after(event, row.status)
    row = replace(row, updated_at=record.at, version=record.version)
    if position is not None:
        row = _card_moved(row, position, record.at)
    match event:
        case CardCreated():
            raise ValueError(f"card {row.id} was created before")
        case CardEdited():
            return replace(
                row,
                title=row.title if event.title is None else event.title,
                profile=row.profile if event.profile is None else event.profile,
                workspace=row.workspace if event.workspace is None else event.workspace,
                priority=row.priority if event.priority is None else event.priority,
                tell=event.tell or row.tell,
                node=row.node if event.node is None else event.node,
            )
        case CardCommented():
            return replace(row, comments=row.comments + 1)
        case CardUnblocked():
            return replace(row, retry_at=None, warning="")
        case RunStarted():
            return replace(
                row, run=event.run, session=event.session, warning=event.fresh_reason, retry_at=None, host=event.node
            )
        case RunAssigned():
            return replace(row, assigned=event.node)
        case RunFinished():
            return replace(row, retry_at=event.retry_at)
        case (
            CardLinked()
            | CardUnlinked()
            | CardFollowed()
            | CardMoved()
            | CardBlocked()
            | CardCompleted()
            | RunReminded()
            | RunHeartbeat()
        ):
            return row
        case _ as never:
            assert_never(never)


def _card_moved(row: CardRow, position: CardPosition, at: int) -> CardRow:
    """In another column. What was done stays done in the archive."""
    return replace(
        row,
        status=position.status,
        done=position.status == "done" or (position.status == "archived" and row.done),
        reason=position.reason,
        block_kind=position.block_kind or "",
        scheduled_at=position.scheduled_at,
        moved_at=at,
        assigned="",
    )


def _run_started(event: RunStarted, card: str, record: Record) -> RunRow:
    return RunRow(
        card=card,
        run=event.run,
        session=event.session,
        task=event.task,
        profile=event.profile,
        resumes=event.resumed_run,
        fresh_because=event.fresh_reason,
        workspace=event.workspace,
        after_turn=event.after_turn,
        started_at=record.at,
        node=event.node,
    )


def run_after(row: RunRow, event: RunHeartbeat | RunFinished, at: int) -> RunRow:
    """The row of a run after one of its events."""
    match event:
        case RunHeartbeat():
            return replace(row, note=event.note)
        case RunFinished():
            return replace(
                row,
                outcome=event.outcome,
                failure=event.failure,
                reason=event.reason,
                counts=event.uses_attempt,
                until_turn=event.until_turn,
                finished_at=at,
            )
        case _ as never:
            assert_never(never)
