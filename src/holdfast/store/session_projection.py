"""What the events of a session do to its row and to the rows of its turns and waits. See `projection.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from holdfast.domain.chapter import compaction_after
from holdfast.domain.events import Record
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.chapter import (
    ChapterOpened,
    ChapterRejoined,
    ResetPolicySet,
    ResetPostponed,
    SummaryEvent,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
    ToolResultsTrimmed,
)
from holdfast.domain.events.external_agent import AgentAttached, AgentPlanned, DriverOutputRead, SessionAdopted
from holdfast.domain.events.parts import Delegated, Forked
from holdfast.domain.events.run_binding import RunBound, RunReleased
from holdfast.domain.events.session import (
    AgentChosen,
    FailureDismissed,
    InputReceived,
    InputRevised,
    InputsJoined,
    InputWithdrawn,
    ModeChosen,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    NodeChosen,
    NoteReceived,
    SessionArchived,
    SessionCreated,
    SessionEvent,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    SessionTellSet,
    StopRequested,
    ToolCallFinished,
    ToolCallStarted,
    TurnBackgrounded,
    TurnFinished,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    TurnUndone,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.session import TurnState, is_person_active
from holdfast.domain.session_rules import title_from
from holdfast.domain.text import shorten, without_markdown
from holdfast.store.rows import AnswerRow, SessionRow, TurnRow, WaitRow

if TYPE_CHECKING:
    from holdfast.store.projection import ProjectedRows

PREVIEW = 120


def project_session(event: SessionEvent, id: str, record: Record, rows: ProjectedRows) -> None:
    """Change the rows that one event is about: the session, its turns, waits and answers."""
    if isinstance(event, SessionCreated):
        rows.add(_created(event, id, record))
        return
    row = rows.get(SessionRow, id)
    if row is None:
        return
    match event:
        case ModelResponded():
            if event.text.strip():
                rows.add(AnswerRow(id, record.version, record.at))
            _change_turn(rows, id, event, record.at)
        case TurnStarted():
            rows.add(TurnRow(id, event.turn, "running", record.at))
        case TurnFinished():
            _change_turn(rows, id, event, record.at)
            wait = rows.open_wait(id)
            if wait is not None and wait.turn == event.turn:
                rows.put(replace(wait, state="closed", ended_at=record.at))
        case WaitOpened():
            rows.add(_opened(event, id, record))
            _change_turn(rows, id, event, record.at)
        case WaitAnswered():
            wait = rows.get(WaitRow, event.wait)
            if wait is not None and wait.state == "open":
                by = str(event.by)
                rows.put(replace(wait, state="answered", answer=event.answer, answered_by=by, ended_at=record.at))
            _change_turn(rows, id, event, record.at)
        case TurnSuspended() | TurnResumed():
            _change_turn(rows, id, event, record.at)
        case _:
            ...
    rows.put(session_after(row, event, record))


# --- sessions -----------------------------------------------------------------------------------


def _created(event: SessionCreated, id: str, record: Record) -> SessionRow:
    return SessionRow(
        id,
        event.title,
        event.profile,
        event.cwd,
        record.at,
        record.at,
        record.version,
        parent=event.origin.parent if isinstance(event.origin, Forked) else "",
        task=event.origin.task if isinstance(event.origin, Delegated) else "",
        ancestors=[] if event.rights is None else event.rights.ancestors,
        node=event.node,
        chat=event.chat,
    )


def session_after(row: SessionRow, event: SessionEvent, record: Record) -> SessionRow:
    """The row of a session after one of its events.

    Each event moves the version; only messages and answers change the place in the list (`updated_at`).
    """
    at, version = record.at, record.version
    match event:
        case ModelResponded():
            said = shorten(without_markdown(event.text[: 4 * PREVIEW]), PREVIEW)
            count, preview = row.message_count + bool(event.text), said or row.preview
            return replace(row, version=version, updated_at=at, message_count=count, preview=preview)
        case (
            ModelRequested()
            | ToolCallStarted()
            | ToolCallFinished()
            | ModelInterrupted()
            | ModelFailed()
            | NoteReceived()
            | TurnBackgrounded()
            | ResetPostponed()
            | ToolResultsTrimmed()
            | RunReleased()
            | AgentAttached()
            | AgentPlanned()
            | DriverOutputRead()
        ):
            return replace(row, version=version)
        case InputReceived():
            counts = {"message_count": row.message_count + 1, "queued": row.queued + 1}
            row = replace(row, version=version, updated_at=at, title=row.title or title_from(event.text), **counts)
            return _acted(row, at, event.by, begins=True)
        case TurnStarted() | InputsJoined() | TurnSuspended() | TurnResumed() | WaitOpened() | TurnFinished():
            return _after_turn_event(row, event, at, version)
        case WaitAnswered():
            return _acted(_turn_in(row, event.turn, "running", at, version), at, event.by)
        case _:
            return _after_rare_event(replace(row, version=version), event, at)


def _after_turn_event(
    row: SessionRow,
    event: TurnStarted | InputsJoined | TurnSuspended | TurnResumed | WaitOpened | TurnFinished,
    at: int,
    version: int,
) -> SessionRow:
    match event:
        case TurnStarted():
            return _taken(_turn_in(row, event.turn, "running", at, version), event)
        case InputsJoined():
            return _taken(replace(row, version=version), event)
        case TurnSuspended():
            return _turn_in(row, event.turn, "suspended", at, version)
        case TurnResumed():
            return _turn_in(row, event.turn, "running", at, version)
        case WaitOpened():
            return _turn_in(row, event.turn, "waiting", at, version)
        case TurnFinished():
            by_person = row.person_turn == event.turn and row.first_input_at > 0
            return replace(
                row,
                turn_state=event.outcome,
                failed_turn=event.turn if event.outcome == "failed" else 0,
                updated_at=at,
                version=version,
                last_active_at=at if by_person else row.last_active_at,
            )
        case _ as never:
            assert_never(never)


def _turn_in(row: SessionRow, turn: int, state: TurnState, at: int, version: int) -> SessionRow:
    return replace(row, turn=turn, turn_state=state, failed_turn=0, updated_at=at, version=version)


def _taken(row: SessionRow, event: TurnStarted | InputsJoined) -> SessionRow:
    """Messages leave the queue."""
    person_turn = row.turn if event.by_person else row.person_turn
    return replace(row, queued=row.queued - len(event.inputs), person_turn=person_turn)


def _acted(row: SessionRow, at: int, by: Actor, *, begins: bool = False) -> SessionRow:
    if not is_person_active(by, begun=begins or row.first_input_at > 0):
        return row
    return replace(row, first_input_at=row.first_input_at or at, last_active_at=at)


RareEvent = (
    SessionCreated
    | SessionRenamed
    | SessionArchived
    | SessionRestored
    | SessionPinned
    | SessionTellSet
    | StopRequested
    | InputRevised
    | InputWithdrawn
    | TurnUndone
    | FailureDismissed
    | AgentChosen
    | ModeChosen
    | NodeChosen
    | RunBound
    | ResetPolicySet
    | ChapterOpened
    | ChapterRejoined
    | SummaryEvent
    | SessionAdopted
)


def _after_rare_event(row: SessionRow, event: RareEvent, at: int) -> SessionRow:
    """What people do to a session; rarer than what is done in it."""
    match event:
        case SessionCreated():
            raise ValueError(f"session {row.id} was created before")
        case StopRequested() | InputRevised() | ModeChosen() | NodeChosen():
            return _acted(row, at, event.by)
        case InputWithdrawn():
            withdrawn = replace(row, message_count=row.message_count - 1, queued=row.queued - 1)
            return _acted(withdrawn, at, event.by)
        case TurnUndone() | FailureDismissed():
            failed_turn = 0 if row.failed_turn == event.turn else row.failed_turn
            return _acted(replace(row, failed_turn=failed_turn), at, event.by)
        case AgentChosen():
            return _acted(replace(row, profile=event.profile, model=event.model), at, event.by)
        case SessionRenamed():
            return replace(row, title=event.title)
        case SessionArchived():
            return replace(row, archived=True, failed_turn=0)
        case SessionRestored():
            return replace(row, archived=False)
        case SessionPinned():
            return replace(row, pinned=event.pinned)
        case SessionTellSet():
            return replace(row, tell=event.tell)
        case RunBound():
            return replace(row, cwd=event.cwd or row.cwd)
        case ResetPolicySet():
            first_input_at = at if row.first_input_at else 0  # a rule is not about the time before it
            return _acted(replace(row, reset_policy=event.policy, first_input_at=first_input_at), at, event.by)
        case SessionAdopted():
            return replace(row, updated_at=at, first_input_at=at, last_active_at=at)
        case ChapterOpened():
            failed_turn = 0 if event.rule == "person" else row.failed_turn
            opened = replace(row, chapter=event.chapter, chapter_at=at, failed_turn=failed_turn, person_turn=0)
            return _fresh_chapter(opened, 0)
        case ChapterRejoined():
            return _fresh_chapter(replace(row, chapter=event.chapter - 1, chapter_at=event.since), at)
        case SummaryRequested() | SummaryStarted() | SummaryFailed() | SummaryWritten():
            requested, running = compaction_after(
                event, requested=row.compaction_requested, running=row.compaction_running
            )
            row = replace(row, compaction_requested=requested, compaction_running=running)
            return _acted(row, at, event.by) if isinstance(event, SummaryRequested) else row
        case _ as never:
            assert_never(never)


def _fresh_chapter(row: SessionRow, at: int) -> SessionRow:
    return replace(row, first_input_at=at, last_active_at=at, compaction_requested=False, compaction_running=False)


# --- turns and waits ----------------------------------------------------------------------------


TurnEvent = ModelResponded | TurnSuspended | TurnResumed | WaitOpened | WaitAnswered | TurnFinished


def _change_turn(rows: ProjectedRows, session: str, event: TurnEvent, at: int) -> None:
    row = rows.get(TurnRow, session, event.turn)
    if row is not None:
        rows.put(turn_after(row, event, at))


def turn_after(row: TurnRow, event: TurnEvent, at: int) -> TurnRow:
    """The row of a turn after one of its events."""
    match event:
        case ModelResponded(step=step, usage=usage):
            cost = row.cost if usage.cost is None else (row.cost or 0) + usage.cost
            return replace(
                row,
                steps=step,
                input_tokens=row.input_tokens + usage.input_tokens,
                output_tokens=row.output_tokens + usage.output_tokens,
                cost=cost,
            )
        case TurnSuspended():
            return replace(row, state="suspended", reason=event.reason)
        case TurnResumed():
            return replace(row, state="running", reason="", resumes=row.resumes + 1)
        case WaitOpened():
            return replace(row, state="waiting", reason=event.reason)
        case WaitAnswered():
            return replace(row, state="running", reason="")
        case TurnFinished():
            return replace(row, state=event.outcome, finished_at=at, reason=event.reason)
        case _ as never:
            assert_never(never)


def _opened(event: WaitOpened, session: str, record: Record) -> WaitRow:
    return WaitRow(
        event.wait,
        session,
        event.turn,
        record.version,
        event.purpose,
        event.reason,
        event.call,
        event.choices,
        event.pattern,
        record.at,
        until=event.until,
        shown=event.shown,
    )
