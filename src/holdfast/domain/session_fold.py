"""The fold: from the events of a session to its state.

`evolve` is the only way to change a Session. It works in place, since copying the history at every
event would make a fold quadratic; it is pure in every other sense: no I/O, no clock, and the same
events always give the same state.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.domain.chapter import Chapter, evolve_compaction
from holdfast.domain.events import Record
from holdfast.domain.events.card import BoardEvent, CardEvent
from holdfast.domain.events.chapter import (
    ChapterEvent,
    ChapterOpened,
    ChapterRejoined,
    CompactionRequested,
    ContextCompacted,
    ResetPolicySet,
    ResetPostponed,
)
from holdfast.domain.events.parts import EventRef
from holdfast.domain.events.session import (
    AgentChosen,
    FailureDismissed,
    InputReceived,
    InputRevised,
    InputsJoined,
    InputWithdrawn,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    NoteReceived,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    Shelved,
    StopRequested,
    ToolCallFinished,
    ToolCallStarted,
    TurnDetached,
    TurnFinished,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    TurnUndone,
    WaitAnswered,
    WaitOpened,
    WorkerBound,
    WorkerReleased,
)
from holdfast.domain.events.system import SystemEvent
from holdfast.domain.events.task import TaskEvent
from holdfast.domain.history import (
    TOKEN_SHIFT,
    AgentMessage,
    Note,
    ToolResult,
    UserMessage,
    message_size,
)
from holdfast.domain.queue import QueuedInput, revise, take, withdraw
from holdfast.domain.rights import NO_LIMITS, intersect
from holdfast.domain.session import LastTurn, OpenCall, Session, Turn
from holdfast.domain.task import is_from_task, is_person
from holdfast.domain.text import duration

DIGEST, TRY_AGAIN = "digest", "try again"
"""What a person may choose when there is no summary."""


def fold(session: Session, records: Iterable[Record]) -> Session:
    """Apply records in order, and hand the same session back."""
    for record in records:
        evolve(session, record)
    return session


def evolve(session: Session, record: Record) -> None:
    """Apply one record. The most frequent kinds come first."""
    if record.version != session.version + 1:
        raise ValueError(f"{record.stream}: version {record.version} does not follow {session.version}")
    session.version = record.version
    session.updated_at = record.at
    match record.event:
        case ModelResponded() as e:
            _responded(session, e)
            _progress(session, record)
        case ToolCallFinished() as e:
            session.messages.append(ToolResult(e.turn, e.call, e.tool, e.outcome, e.output))
            session.size += len(e.output) >> TOKEN_SHIFT
            if session.turn is not None:
                session.turn.open_calls.pop(e.call, None)
                session.turn.files += e.files
            _progress(session, record)
        case InputReceived() as e:
            session.queue.add(QueuedInput(e, EventRef(record.version, record.at)))
            _acted(session, record, e.by, begins=True)
        case ToolCallStarted() as e:
            turn = _turn(session)
            turn.open_calls[e.call].effect, turn.open_calls[e.call].started = e.effect, record.at
            turn.last = record
        case ModelRequested() as e:
            turn = _turn(session)
            turn.step, turn.attempts, turn.model = e.step, e.attempt, e.model
            turn.asked, turn.answered, turn.failed = True, False, None
            turn.last = record
        case TurnStarted() as e:
            session.turns = e.turn
            started = EventRef(record.version, record.at)
            session.turn = Turn(e.turn, started, record, task=session.task, by_person=e.by_person)
            session.messages += [Note(e.turn, note.text) for note in session.notes]
            session.notes = []
            _take(session, e.turn, e.inputs)
        case TurnFinished() as e:
            ended = EventRef(record.version, record.at)
            session.last_turn = LastTurn(e.turn, e.outcome, e.reason, e.problem, ended)
            if session.turn is not None and session.turn.by_person and session.last_active is not None:
                session.last_active, session.postponed = ended, None
            session.turn, session.chapter.use_digest = None, False
            if e.outcome != "done":
                session.messages.append(Note(e.turn, f"This turn {e.outcome}: {e.reason}"))
        case InputsJoined() as e:
            turn = _turn(session)
            turn.yielded, turn.released = False, 0
            turn.by_person |= e.by_person
            _take(session, e.turn, e.inputs)
            turn.last = record
        case ModelInterrupted() as e:
            turn = _turn(session)
            turn.asked = False
            session.messages.append(Note(e.turn, _cut_note(e)))
            turn.last = record
        case ModelFailed() as e:
            turn = _turn(session)
            turn.asked, turn.failed = False, e.problem
            turn.last = record
        case TurnSuspended() as e:
            turn = _turn(session)
            turn.suspended, turn.last = e.reason, record
        case TurnResumed() as e:
            turn = _turn(session)
            turn.suspended, turn.resumes = "", e.attempt
            turn.stood_still_ms += e.away_ms
            turn.interruptions.append((record.version, record.at, e.away_ms, e.cause))
            session.messages.append(Note(e.turn, _resume_note(e)))
            turn.last = record
        case WaitOpened() as e:
            turn = _turn(session)
            turn.wait, turn.suspended, turn.failed = e, "", None
            turn.waits += 1
            turn.last = record
        case WaitAnswered() as e:
            turn = _turn(session)
            if turn.wait is not None and turn.wait.purpose != "retry":
                turn.stood_still_ms += max(0, record.at - turn.last.at)
            _answered(session, turn, e)
            _acted(session, record, e.by)
            turn.resumes = 0
            turn.last = record
        case StopRequested() as e:
            if (turn_now := session.turn) is not None and turn_now.number == e.turn:
                turn_now.stop, turn_now.stop_asked = e, EventRef(record.version, record.at)
            _acted(session, record, e.by)
        case other:
            _of_session(session, other, record)


Other = (
    Shelved
    | NoteReceived
    | TurnDetached
    | AgentChosen
    | TurnUndone
    | FailureDismissed
    | InputRevised
    | InputWithdrawn
    | WorkerBound
    | WorkerReleased
    | ChapterEvent
    | TaskEvent
    | CardEvent
    | BoardEvent
    | SystemEvent
)


def _of_session(session: Session, event: Other, record: Record) -> None:
    """What is said to a session or about it; rarer than what is done in it."""
    match event:
        case NoteReceived() as e:
            session.notes.append(e)
        case TurnDetached() as e:
            if session.turn is not None and session.turn.number == e.turn:
                session.turn.task = e.task
        case SessionCreated() as e:
            session.title, session.profile, session.cwd, session.task = e.title, e.profile, e.cwd, e.task
            session.rights, session.workspace_of = e.rights or NO_LIMITS, e.workspace_of
            session.limited_at = EventRef(record.version, record.at) if e.rights is not None else None
        case SessionRenamed() as e:
            session.title = e.title
        case AgentChosen() as e:
            session.profile, session.model = e.profile, e.model
            _acted(session, record, e.by)
        case TurnUndone() as e:
            session.undone.add(e.turn)
            session.messages = [message for message in session.messages if message.turn != e.turn]
            session.size = _estimate(session)
            _dismiss(session, e.turn)
            _acted(session, record, e.by)
        case FailureDismissed() as e:
            _dismiss(session, e.turn)
            _acted(session, record, e.by)
        case SessionArchived():
            session.archived_at = EventRef(record.version, record.at)
        case SessionRestored():
            session.archived_at = None
        case SessionPinned() as e:
            session.pinned = e.pinned
        case InputRevised() as e:
            session.queue = revise(session.queue, e)
            _acted(session, record, e.by)
        case InputWithdrawn() as e:
            session.queue = withdraw(session.queue, e.input)
            _acted(session, record, e.by)
        case WorkerBound() as e:
            session.card, session.run, session.cwd = e.card, e.run, e.cwd or session.cwd
            session.workspace_of = e.card
            if e.rights is not None:
                session.rights = intersect(session.rights, e.rights)
                session.limited_at = EventRef(record.version, record.at)
        case WorkerReleased():
            session.run = 0
            if session.turn is not None:
                session.turn.released = session.turn.step
        case other:
            if isinstance(other, TaskEvent | CardEvent | BoardEvent | SystemEvent):
                raise TypeError(f"{type(other).__name__} does not belong into a session")
            _of_chapter(session, other, record)


def _of_chapter(session: Session, event: ChapterEvent, record: Record) -> None:
    happened = EventRef(record.version, record.at)
    match event:
        case ResetPostponed():
            session.postponed = (event, happened)
        case ResetPolicySet(policy=policy, by=by):
            session.policy = policy
            if session.first_input is not None:  # a rule is not about the time before it was set
                session.first_input = happened
            _acted(session, record, by)
        case ChapterOpened():
            session.chapter.requested = None
            session.chapters.append(Chapter(event.chapter, session.turns, event, happened))
            session.first_input = session.last_active = session.postponed = None
            session.size = _estimate(session)
        case ChapterRejoined():
            session.chapters.pop()
            session.first_input = session.last_active = happened
            session.postponed = None
            session.size = _estimate(session)
        case other:
            evolve_compaction(session.chapter, other, happened)
            if isinstance(other, CompactionRequested):
                _acted(session, record, other.by)
            if isinstance(other, ContextCompacted):
                session.size = other.tokens_after
                if session.turn is not None:
                    session.turn.failed = None


def _acted(session: Session, record: Record, by: str, *, begins: bool = False) -> None:
    """A person did something; what the runtime says in its own name is nothing of the kind."""
    if not is_person(by):
        return
    happened = EventRef(record.version, record.at)
    if begins and session.first_input is None:
        session.first_input = happened
    if session.first_input is not None:
        session.last_active, session.postponed = happened, None


def _dismiss(session: Session, turn: int) -> None:
    """It is known that this turn failed."""
    last = session.last_turn
    if last is not None and last.number == turn:
        session.last_turn = msgspec.structs.replace(last, dismissed=True)


def _estimate(session: Session) -> int:
    return sum(message_size(message) for message in session.context())


def _turn(session: Session) -> Turn:
    if session.turn is None:
        raise ValueError(f"session {session.id}: an event of a turn, but no turn is open")
    return session.turn


def _progress(session: Session, record: Record) -> None:
    turn = session.turn
    if turn is not None:
        turn.resumes = 0
        turn.last = record


def _responded(session: Session, event: ModelResponded) -> None:
    session.messages.append(AgentMessage(event.turn, event.text, event.thinking, event.calls, event.signature))
    used = event.usage.input_tokens + event.usage.output_tokens
    session.size = used or session.size + message_size(session.messages[-1])
    turn = _turn(session)
    turn.said = event.text or turn.said
    turn.tokens += used
    turn.asked, turn.answered, turn.yielded = False, True, not event.calls
    session.chapter.use_digest = False
    turn.open_calls = {call.call: OpenCall(call) for call in event.calls}


def _answered(session: Session, turn: Turn, event: WaitAnswered) -> None:
    wait, turn.wait = turn.wait, None
    session.answered[event.wait] = event
    if wait is None:
        return
    if wait.call:
        turn.answers[wait.call] = event
        if event.answer in ("session", "always") and event.pattern:
            session.allowed.add(event.pattern)
        if event.answer in ("call", "session", "always") and event.call_digest:
            session.allowed_calls.add(event.call_digest)
    elif wait.purpose == "compaction":
        session.chapter.use_digest = event.answer == DIGEST
        session.chapter.failures = 0
    elif wait.purpose == "resume":
        session.messages.append(Note(event.turn, f"You stood still: {wait.reason}. {event.by} said: {event.answer}."))


def _take(session: Session, turn: int, inputs: list[str]) -> None:
    taken, session.queue = take(session.queue, inputs)
    for queued in taken:
        kind = Note if is_from_task(queued.event.by) else UserMessage
        session.messages.append(kind(turn, queued.event.text))
        session.size += len(queued.event.text) >> TOKEN_SHIFT


def _cut_note(event: ModelInterrupted) -> str:
    if not event.text:
        return f"Your answer was cut before its first word: {event.reason}."
    return f"Your answer was cut: {event.reason}. So far you had said:\n{event.text}"


def _resume_note(event: TurnResumed) -> str:
    return f"You were interrupted ({event.cause}) and nothing was done for {duration(event.away_ms)}. Go on."
