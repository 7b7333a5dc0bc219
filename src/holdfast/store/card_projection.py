"""What the events of boards, cards and runs do to their rows. See `projection.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from holdfast.domain.card import Board, CardPosition, position_after
from holdfast.domain.events import Record
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
    RunFinished,
    RunHeartbeat,
    RunReminded,
    RunStarted,
)
from holdfast.store.rows import CardRow, RunRow

if TYPE_CHECKING:
    from holdfast.store.projection import ProjectedRows


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
            rows.add(_created(event, id, record))
            for parent in event.parents:
                rows.link(parent, id)
            return
        case CardLinked():
            rows.link(event.parent, id)
        case CardUnlinked():
            rows.unlink(event.parent, id)
        case RunStarted():
            rows.add(_started(event, id, record))
        case RunHeartbeat() | RunFinished():
            run = rows.get(RunRow, id, event.run)
            if run is not None:
                rows.put(run_after(run, event, record.at))
        case _:
            ...
    row = rows.get(CardRow, id)
    if row is not None:
        rows.put(card_after(row, event, record))


def _created(event: CardCreated, id: str, record: Record) -> CardRow:
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
    )


def card_after(row: CardRow, event: CardEvent, record: Record) -> CardRow:
    """The row of a card after one of its events."""
    position = position_after(event, row.status)
    row = replace(row, updated_at=record.at, version=record.version)
    if position is not None:
        row = _moved(row, position, record.at)
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
            )
        case CardCommented():
            return replace(row, comments=row.comments + 1)
        case CardUnblocked():
            return replace(row, retry_at=None, warning="")
        case RunStarted():
            return replace(row, run=event.run, session=event.session, warning=event.fresh_reason, retry_at=None)
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


def _moved(row: CardRow, position: CardPosition, at: int) -> CardRow:
    """In another column. What was done stays done in the archive."""
    return replace(
        row,
        status=position.status,
        done=position.status == "done" or (position.status == "archived" and row.done),
        reason=position.reason,
        block_kind=position.block_kind or "",
        scheduled_at=position.scheduled_at,
        moved_at=at,
    )


def _started(event: RunStarted, card: str, record: Record) -> RunRow:
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
