"""The fold: from the events of a session to its state.

`evolve` returns the next snapshot and leaves the one before as it is. Snapshots share the history (`History`), so
that an event costs the same however long the conversation is. No I/O, no clock: the same events always give the
same state.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from holdfast.domain.chapter import Chapter, evolve_compaction
from holdfast.domain.events import AnyEvent, Record, session_stream
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.card import BoardEvent, CardEvent
from holdfast.domain.events.chapter import (
    ChapterEvent,
    ChapterOpened,
    ChapterRejoined,
    ResetPolicySet,
    ResetPostponed,
    SummaryRequested,
    SummaryWritten,
    ToolResultsTrimmed,
)
from holdfast.domain.events.parts import Delegated, EventRef, Forked
from holdfast.domain.events.session import (
    AgentChosen,
    DriverOutputRead,
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
    RunBound,
    RunReleased,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    Shelved,
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
from holdfast.domain.events.system import SystemEvent
from holdfast.domain.events.task import TaskEvent
from holdfast.domain.history import WHOLE_TURN, AgentMessage, History, Note, ToolResult, UserMessage
from holdfast.domain.queue import QueuedInput, revise, take, withdraw
from holdfast.domain.rights import NO_LIMITS, intersect
from holdfast.domain.session import LastTurn, OpenCall, Session, Turn, is_person_active, trim_results
from holdfast.domain.session_context import (
    current_step,
    interrupted_note,
    resume_note,
    seen_anew,
    shorter,
    with_chapter,
    with_count,
    with_messages,
)

DIGEST, TRY_AGAIN = "digest", "try again"
"""What a person may choose when there is no summary."""


def fold(session: Session, records: Iterable[Record]) -> Session:
    """Return the session after these records."""
    version, at = session.version, session.updated_at
    for record in records:
        if record.version != version + 1:
            raise ValueError(f"{record.stream}: version {record.version} does not follow {version}")
        version, at = record.version, record.at
        session = _evolve(session, record)
    return replace(session, version=version, updated_at=at)


def after(session: Session, events: Iterable[AnyEvent], *, at: int) -> Session:
    """Return the session as it will be when these events are appended at this time, and nothing before them."""
    stream = session_stream(session.id)
    numbered = enumerate(events, session.version + 1)
    return fold(
        session, [Record(seq=0, stream=stream, version=version, at=at, event=event) for version, event in numbered]
    )


def evolve(session: Session, record: Record) -> Session:
    """Return the session after one record."""
    return fold(session, (record,))


def _evolve(session: Session, record: Record) -> Session:
    """Return the session after one record, without its version. The most frequent kinds come first."""
    here = EventRef(record.version, record.at)
    match record.event:
        case ModelResponded() as e:
            return _responded(session, e, here)
        case ToolCallFinished() as e:
            return _call_finished(session, e, here)
        case InputReceived() as e:
            queued = replace(session, queue=session.queue.add(QueuedInput(e, here)))
            return _acted(queued, here, e.by, begins=True)
        case ToolCallStarted() as e:
            turn = _turn(session)
            started = replace(turn.open_calls[e.call], effect=e.effect, started=record.at)
            return _did(session, e, here, open_calls={**turn.open_calls, e.call: started})
        case ModelRequested() as e:
            return _asked(session, e, here)
        case TurnStarted() as e:
            return _turn_started(session, e, here)
        case TurnFinished() as e:
            return _turn_finished(session, e, here)
        case InputsJoined() as e:
            by_person = _turn(session).by_person or e.by_person
            joined = _did(session, e, here, yielded=False, released=0, by_person=by_person)
            return _take(joined, e.turn, e.inputs)
        case ModelInterrupted() as e:
            return _note(_did(session, e, here, asked=False), e.turn, interrupted_note(e))
        case ModelFailed() as e:
            return _model_failed(session, e, here)
        case TurnSuspended() as e:
            return _did(session, e, here, suspended=e.reason)
        case TurnResumed() as e:
            turn = _turn(session)
            resumed = _did(
                session,
                e,
                here,
                suspended="",
                resumes=e.attempt,
                stood_still_ms=turn.stood_still_ms + e.away_ms,
                interruptions=(*turn.interruptions, (record.version, record.at, e.away_ms, e.reason)),
            )
            return _note(resumed, e.turn, resume_note(e))
        case WaitOpened() as e:
            return _did(session, e, here, wait=e, suspended="", failed=None, waits=_turn(session).waits + 1)
        case WaitAnswered() as e:
            return _acted(_answered(session, e, here), here, e.by)
        case StopRequested() as e:
            if session.turn is not None and session.turn.number == e.turn:
                session = replace(session, turn=replace(session.turn, stop=e, stop_asked=here))
            return _acted(session, here, e.by)
        case other:
            return _of_session(session, other, here)


Other = (
    Shelved
    | NoteReceived
    | TurnBackgrounded
    | AgentChosen
    | TurnUndone
    | FailureDismissed
    | InputRevised
    | InputWithdrawn
    | RunBound
    | RunReleased
    | DriverOutputRead
    | ChapterEvent
    | TaskEvent
    | CardEvent
    | BoardEvent
    | SystemEvent
)


def _of_session(session: Session, event: Other, here: EventRef) -> Session:
    """Events about a session; rarer than what is done in it."""
    match event:
        case NoteReceived() as e:
            return replace(session, notes=(*session.notes, e))
        case DriverOutputRead() as e:
            return replace(session, output_read=e)
        case TurnBackgrounded() as e:
            if session.turn is None or session.turn.number != e.turn:
                return session
            return replace(session, turn=replace(session.turn, task=e.task))
        case SessionCreated() as e:
            return replace(
                session,
                title=e.title,
                profile=e.profile,
                cwd=e.cwd,
                driver=e.driver,
                task=e.origin.task if isinstance(e.origin, Delegated) else "",
                rights=e.rights or NO_LIMITS,
                workspace_of=e.origin.workspace_of if isinstance(e.origin, Forked) else "",
                limited_at=here if e.rights is not None else None,
            )
        case SessionRenamed() as e:
            return replace(session, title=e.title)
        case AgentChosen() as e:
            return _acted(replace(session, profile=e.profile, model=e.model), here, e.by)
        case TurnUndone() as e:
            kept = History(message for message in session.messages if message.turn != e.turn)
            session = replace(session, undone=session.undone | {e.turn}, messages=kept)
            session = with_chapter(session, replace(session.chapter, hand_over=None, hand_over_failures=0))
            return _acted(_dismiss(seen_anew(session), e.turn), here, e.by)
        case FailureDismissed() as e:
            return _acted(_dismiss(session, e.turn), here, e.by)
        case SessionArchived():
            return replace(session, archived_at=here)
        case SessionRestored():
            return replace(session, archived_at=None)
        case SessionPinned() as e:
            return replace(session, pinned=e.pinned)
        case InputRevised() as e:
            return _acted(replace(session, queue=revise(session.queue, e)), here, e.by)
        case InputWithdrawn() as e:
            return _acted(replace(session, queue=withdraw(session.queue, e.input)), here, e.by)
        case RunBound() as e:
            session = replace(session, card=e.card, run=e.run, cwd=e.cwd or session.cwd, workspace_of=e.card)
            if e.rights is None:
                return session
            return replace(session, rights=intersect(session.rights, e.rights), limited_at=here)
        case RunReleased():
            turn = session.turn
            return replace(session, run=0, turn=turn and replace(turn, released=turn.step))
        case other:
            if isinstance(other, TaskEvent | CardEvent | BoardEvent | SystemEvent):
                raise TypeError(f"{type(other).__name__} does not belong into a session")
            return _of_chapter(session, other, here)


def _of_chapter(session: Session, event: ChapterEvent, here: EventRef) -> Session:
    match event:
        case ResetPostponed():
            return replace(session, postponed=(event, here))
        case ResetPolicySet(policy=policy, by=by):
            first_input = None if session.first_input is None else here  # a rule is not about the time before it
            return _acted(replace(session, policy=policy, first_input=first_input), here, by)
        case ChapterOpened():
            closed = replace(session.chapter, requested=None)
            chapters = (*session.chapters[:-1], closed, Chapter(event.chapter, session.turns, event, here))
            return seen_anew(replace(session, chapters=chapters, first_input=None, last_active=None, postponed=None))
        case ChapterRejoined():
            chapters = session.chapters[:-1]
            return seen_anew(replace(session, chapters=chapters, first_input=here, last_active=here, postponed=None))
        case other:
            session = with_chapter(session, evolve_compaction(session.chapter, other, here))
            if isinstance(other, SummaryRequested):
                return _acted(session, here, other.by)
            if isinstance(other, ToolResultsTrimmed):
                return shorter(session, History(trim_results(session.context(), other)), other.tokens_after)
            if isinstance(other, SummaryWritten) and other.purpose == "compaction":
                return shorter(session, session.made_visible(), other.tokens_after)
            return session


def _acted(session: Session, here: EventRef, by: Actor, *, begins: bool = False) -> Session:
    """Somebody did something; a message begins an empty chapter."""
    if not is_person_active(by, begun=begins or session.first_input is not None):
        return session
    return replace(session, first_input=session.first_input or here, last_active=here, postponed=None)


def _dismiss(session: Session, turn: int) -> Session:
    """A person knows that this turn failed."""
    last = session.last_turn
    if last is None or last.number != turn:
        return session
    return replace(session, last_turn=replace(last, dismissed=True))


def _turn(session: Session) -> Turn:
    if session.turn is None:
        raise ValueError(f"session {session.id}: an event of a turn, but no turn is open")
    return session.turn


def _did(session: Session, event: AnyEvent, here: EventRef, **changes: object) -> Session:
    """The worker did something in the open turn."""
    turn = replace(_turn(session), last_done=here, last_kind=type(event).__name__, **changes)
    return replace(session, turn=turn)


def _note(session: Session, turn: int, text: str) -> Session:
    return with_messages(session, Note(turn, text, current_step(session)))


def _turn_started(session: Session, event: TurnStarted, here: EventRef) -> Session:
    turn = Turn(event.turn, here, here, type(event).__name__, task=session.task, by_person=event.by_person)
    if session.chapter.hand_over is not None or session.chapter.hand_over_failures:  # of before it
        session = with_chapter(session, replace(session.chapter, hand_over=None, hand_over_failures=0))
    notes = [Note(event.turn, note.text) for note in session.notes]
    started = with_messages(replace(session, turns=event.turn, turn=turn, notes=()), *notes)
    return _take(started, event.turn, event.inputs)


def _turn_finished(session: Session, event: TurnFinished, here: EventRef) -> Session:
    last, step = LastTurn(event.turn, event.outcome, event.reason, event.problem, here), current_step(session)
    if session.turn is not None and session.turn.by_person and session.last_active is not None:
        session = replace(session, last_active=here, postponed=None)
    session = with_chapter(replace(session, last_turn=last, turn=None), replace(session.chapter, use_digest=False))
    if event.outcome == "done":
        return session
    return with_messages(session, Note(event.turn, f"This turn {event.outcome}: {event.reason}", step))


def _asked(session: Session, event: ModelRequested, here: EventRef) -> Session:
    asked = {"step": event.step, "attempts": event.attempt, "model": event.model}
    session = _did(session, event, here, **asked, asked=True, answered=False, failed=None)
    if session.refused_by and session.refused_by != event.model:
        session = replace(session, refused_tokens=0, refused_by="")
    if event.fixed_tokens == session.fixed_tokens:
        return session
    uncounted = {} if session.counted else {"counted_tokens": event.fixed_tokens}
    return replace(session, fixed_tokens=event.fixed_tokens, **uncounted)


def _model_failed(session: Session, event: ModelFailed, here: EventRef) -> Session:
    session = _did(session, event, here, asked=False, failed=event.problem)
    if event.problem.code != "context_too_long":
        return session
    refused = min(session.refused_tokens or session.size, session.size)
    return replace(session, refused_tokens=refused, refused_by=_turn(session).model)


def _responded(session: Session, event: ModelResponded, here: EventRef) -> Session:
    message = AgentMessage(event.turn, event.text, event.thinking, event.calls, event.signature, event.step)
    used = event.usage.input_tokens + event.usage.output_tokens
    turn = _turn(session)
    session = _did(
        session,
        event,
        here,
        said=event.text or turn.said,
        tokens=turn.tokens + used,
        asked=False,
        answered=True,
        yielded=not event.calls,
        open_calls={**turn.open_calls, **{call.call: OpenCall(call) for call in event.calls}},
        resumes=0,
    )
    if session.chapter.use_digest:
        session = with_chapter(session, replace(session.chapter, use_digest=False))
    return with_count(with_messages(session, message), event.usage.context_tokens or used)


def _call_finished(session: Session, event: ToolCallFinished, here: EventRef) -> Session:
    turn = session.turn
    step = WHOLE_TURN - 1 if turn is None else turn.step
    session = with_messages(session, ToolResult(event.turn, event.call, event.tool, event.outcome, event.output, step))
    if turn is None:
        return session
    open_calls = {call: open_call for call, open_call in turn.open_calls.items() if call != event.call}
    return _did(session, event, here, open_calls=open_calls, files=(*turn.files, *event.files), resumes=0)


def _answered(session: Session, event: WaitAnswered, here: EventRef) -> Session:
    turn = _turn(session)
    wait, stood_still = turn.wait, turn.stood_still_ms
    if wait is not None and wait.purpose != "retry":
        stood_still += max(0, here.at - turn.last_done.at)
    session = _did(session, event, here, wait=None, resumes=0, stood_still_ms=stood_still)
    session = replace(session, answered={**session.answered, event.wait: event})
    if wait is None:
        return session
    if wait.call:
        session = replace(session, turn=replace(_turn(session), answers={**turn.answers, wait.call: event}))
        if event.grant is not None and event.grant.rule:
            session = replace(session, allowed=session.allowed | {event.grant.rule})
        if event.grant is not None and event.call_digest:
            session = replace(session, allowed_calls=session.allowed_calls | {event.call_digest})
        return session
    if wait.purpose == "compaction":
        return with_chapter(session, replace(session.chapter, use_digest=event.answer == DIGEST, failures=0))
    if wait.purpose == "resume":
        return _note(session, event.turn, f"You stood still: {wait.reason}. {event.by} said: {event.answer}.")
    return session


def _take(session: Session, turn: int, inputs: list[str]) -> Session:
    taken, left = take(session.queue, inputs)
    step = current_step(session)
    messages = [
        Note(turn, queued.event.text, step)
        if queued.event.source == "task"
        else UserMessage(turn, queued.event.text, step)
        for queued in taken
    ]
    return with_messages(replace(session, queue=left), *messages)
