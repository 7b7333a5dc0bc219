"""The events of turns in the fold (`session_fold.py`): inputs, turns, waits, and the steps of the model.

Loading a session spends most of its time here, so what happens in every turn copies the session once, and `replace`
gets its keywords where it is called: to pass them on through another function takes longer than the copy.
"""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.domain.events.actor import is_person
from holdfast.domain.events.external_agent import AgentAttached, AgentPlanned, DriverOutputRead, SessionAdopted
from holdfast.domain.events.parts import EventRef
from holdfast.domain.events.session import (
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
from holdfast.domain.fold_parts import (
    FoldTable,
    added,
    input_messages,
    recompute_visible,
    with_activity,
    with_chapter,
    with_count,
    with_note,
)
from holdfast.domain.history import WHOLE_TURN, AgentMessage, History, Note, ToolResult
from holdfast.domain.model_notes import ended_note, interrupted_note, paused_note, resumed_note
from holdfast.domain.queue import QueuedInput, revise, take, withdraw
from holdfast.domain.session import LastTurn, OpenCall, Session, Turn

DIGEST, TRY_AGAIN = "digest", "try again"
"""What a person may choose when there is no summary."""
KEEP_WAITING = "wait for me"
"""The answer that cancels the countdown of a wait for a quota."""
TURN_EVENTS = FoldTable()


# --- inputs -------------------------------------------------------------------------------------


@TURN_EVENTS.on(InputReceived)
def _input_received(session: Session, event: InputReceived, here: EventRef) -> Session:
    queue = (*session.queue, QueuedInput(event, here))
    if not is_person(event.by):
        return replace(session, queue=queue)
    return replace(session, queue=queue, first_input=session.first_input or here, last_active=here, postponed=None)


@TURN_EVENTS.on(InputRevised)
def _input_revised(session: Session, event: InputRevised, here: EventRef) -> Session:
    return with_activity(replace(session, queue=revise(session.queue, event)), event.by, here)


@TURN_EVENTS.on(InputWithdrawn)
def _input_withdrawn(session: Session, event: InputWithdrawn, here: EventRef) -> Session:
    return with_activity(replace(session, queue=withdraw(session.queue, event.input)), event.by, here)


@TURN_EVENTS.on(InputsJoined)
def _inputs_joined(session: Session, event: InputsJoined, here: EventRef) -> Session:
    turn = _open_turn(session)
    taken, queue = take(session.queue, event.inputs)
    messages, visible = added(session, input_messages(taken, event.turn, step=turn.step))
    turn = replace(
        turn,
        last_done=here,
        last_kind=type(event).__name__,
        yielded=False,
        released=0,
        by_person=turn.by_person or event.by_person,
    )
    return replace(session, turn=turn, queue=queue, messages=messages, visible=visible)


@TURN_EVENTS.on(NoteReceived)
def _note_received(session: Session, event: NoteReceived, _: EventRef) -> Session:
    return replace(session, notes=(*session.notes, event))


# --- turns --------------------------------------------------------------------------------------


@TURN_EVENTS.on(TurnStarted)
def _turn_started(session: Session, event: TurnStarted, here: EventRef) -> Session:
    turn = Turn(event.turn, here, here, type(event).__name__, task=session.task, by_person=event.by_person)
    taken, queue = take(session.queue, event.inputs)
    inputs = input_messages(taken, event.turn, step=0)
    if session.notes:
        inputs = [*(Note(event.turn, note.text) for note in session.notes), *inputs]
    messages, visible = added(session, inputs)
    session = _without_hand_over(session)
    return replace(session, turns=event.turn, turn=turn, notes=(), queue=queue, messages=messages, visible=visible)


@TURN_EVENTS.on(TurnFinished)
def _turn_finished(session: Session, event: TurnFinished, here: EventRef) -> Session:
    last = LastTurn(event.turn, event.outcome, event.reason, event.problem, here)
    if event.outcome != "done":
        session = with_note(session, event.turn, ended_note(event))
    session = _without_digest(session)
    if session.turn is None or not session.turn.by_person or session.last_active is None:
        return replace(session, last_turn=last, turn=None)
    return replace(session, last_turn=last, turn=None, last_active=here, postponed=None)


@TURN_EVENTS.on(TurnSuspended)
def _turn_suspended(session: Session, event: TurnSuspended, here: EventRef) -> Session:
    turn = replace(_open_turn(session), last_done=here, last_kind=type(event).__name__, suspended=event.reason)
    return replace(session, turn=turn)


@TURN_EVENTS.on(TurnResumed)
def _turn_resumed(session: Session, event: TurnResumed, here: EventRef) -> Session:
    turn = _open_turn(session)
    resumed = replace(
        turn,
        last_done=here,
        last_kind=type(event).__name__,
        suspended="",
        resumes=event.attempt,
        nodes_lost=turn.nodes_lost + (event.interruption == "node_lost"),
        stood_still_ms=turn.stood_still_ms + event.away_ms,
        interruptions=(*turn.interruptions, (here.version, here.at, event.away_ms, event.reason)),
    )
    return with_note(replace(session, turn=resumed), event.turn, resumed_note(event))


@TURN_EVENTS.on(TurnBackgrounded)
def _turn_backgrounded(session: Session, event: TurnBackgrounded, _: EventRef) -> Session:
    if session.turn is None or session.turn.number != event.turn:
        return session
    return replace(session, turn=replace(session.turn, task=event.task))


@TURN_EVENTS.on(StopRequested)
def _stop_requested(session: Session, event: StopRequested, here: EventRef) -> Session:
    if session.turn is not None and session.turn.number == event.turn:
        session = replace(session, turn=replace(session.turn, stop=event, stop_asked=here))
    return with_activity(session, event.by, here)


@TURN_EVENTS.on(TurnUndone)
def _turn_undone(session: Session, event: TurnUndone, here: EventRef) -> Session:
    kept = History(message for message in session.messages if message.turn != event.turn)
    session = _without_hand_over(replace(session, undone=session.undone | {event.turn}, messages=kept))
    return with_activity(_dismiss(recompute_visible(session), event.turn), event.by, here)


@TURN_EVENTS.on(FailureDismissed)
def _failure_dismissed(session: Session, event: FailureDismissed, here: EventRef) -> Session:
    return with_activity(_dismiss(session, event.turn), event.by, here)


# --- waits --------------------------------------------------------------------------------------


@TURN_EVENTS.on(WaitOpened)
def _wait_opened(session: Session, event: WaitOpened, here: EventRef) -> Session:
    turn = _open_turn(session)
    waiting = replace(
        turn,
        last_done=here,
        last_kind=type(event).__name__,
        wait=event,
        waits=turn.waits + 1,
        quota_waits=turn.quota_waits + (event.purpose == "quota"),
        kept_waiting=None,
        suspended="",
        failed=None,
    )
    return replace(session, turn=waiting)


@TURN_EVENTS.on(WaitAnswered)
def _wait_answered(session: Session, event: WaitAnswered, here: EventRef) -> Session:
    turn = _open_turn(session)
    wait, answers, stood_still = turn.wait, turn.answers, turn.stood_still_ms
    if wait is not None and wait.purpose != "retry":
        stood_still += max(0, here.at - turn.last_done.at)
    if wait is not None and wait.call:
        answers = {**answers, wait.call: event}
    turn = replace(
        turn,
        last_done=here,
        last_kind=type(event).__name__,
        wait=None,
        answers=answers,
        kept_waiting=wait if wait is not None and event.answer == KEEP_WAITING else None,
        resumes=0,
        nodes_lost=0,
        stood_still_ms=stood_still,
    )
    session = replace(session, turn=turn, answered={**session.answered, event.wait: event})
    if wait is not None:
        session = _with_answer(session, wait, event)
    return with_activity(session, event.by, here)


def _with_answer(session: Session, wait: WaitOpened, event: WaitAnswered) -> Session:
    """Return the session with what an answer to this wait changes beyond its turn."""
    if wait.call:
        if event.grant is not None and event.grant.rule:
            session = replace(session, allowed=session.allowed | {event.grant.rule})
        if event.grant is not None and event.call_digest:
            session = replace(session, allowed_calls=session.allowed_calls | {event.call_digest})
        return session
    if wait.purpose == "compaction":
        return with_chapter(session, replace(session.chapter, use_digest=event.answer == DIGEST, failures=0))
    if wait.purpose == "resume":
        return with_note(session, event.turn, paused_note(wait.reason, event))
    return session


# --- steps: the model and its calls -------------------------------------------------------------


@TURN_EVENTS.on(ModelRequested)
def _model_requested(session: Session, event: ModelRequested, here: EventRef) -> Session:
    turn = replace(
        _open_turn(session),
        last_done=here,
        last_kind=type(event).__name__,
        step=event.step,
        attempts=event.attempt,
        model=event.model,
        asked=True,
        answered=False,
        yielded=False,
        failed=None,
    )
    if session.refused_by and session.refused_by != event.model:
        session = replace(session, refused_tokens=0, refused_by="")
    if event.fixed_tokens != session.fixed_tokens:
        counted_tokens = session.counted_tokens if session.counted else event.fixed_tokens
        session = replace(session, fixed_tokens=event.fixed_tokens, counted_tokens=counted_tokens)
    return replace(session, turn=turn)


@TURN_EVENTS.on(ModelResponded)
def _model_responded(session: Session, event: ModelResponded, here: EventRef) -> Session:
    message = AgentMessage(event.turn, event.text, event.thinking, event.calls, event.signature, event.step)
    used = event.usage.input_tokens + event.usage.output_tokens
    turn = _open_turn(session)
    open_calls = turn.open_calls
    if event.calls:
        open_calls = {**open_calls, **{call.call: OpenCall(call) for call in event.calls}}
    turn = replace(
        turn,
        last_done=here,
        last_kind=type(event).__name__,
        said=event.text or turn.said,
        tokens=turn.tokens + used,
        asked=False,
        answered=True,
        yielded=not event.calls,
        open_calls=open_calls,
        resumes=0,
        nodes_lost=0,
    )
    messages, visible = added(session, [message])
    session = replace(_without_digest(session), turn=turn, messages=messages, visible=visible)
    return with_count(session, event.usage.context_tokens or used)


@TURN_EVENTS.on(ModelInterrupted)
def _model_interrupted(session: Session, event: ModelInterrupted, here: EventRef) -> Session:
    turn = replace(_open_turn(session), last_done=here, last_kind=type(event).__name__, asked=False)
    return with_note(replace(session, turn=turn), event.turn, interrupted_note(event))


@TURN_EVENTS.on(ModelFailed)
def _model_failed(session: Session, event: ModelFailed, here: EventRef) -> Session:
    turn = _open_turn(session)
    failed = replace(turn, last_done=here, last_kind=type(event).__name__, asked=False, failed=event.problem)
    session = replace(session, turn=failed)
    if event.problem.code != "context_too_long":
        return session
    refused = min(session.refused_tokens or session.size, session.size)
    return replace(session, refused_tokens=refused, refused_by=turn.model)


@TURN_EVENTS.on(ToolCallStarted)
def _tool_call_started(session: Session, event: ToolCallStarted, here: EventRef) -> Session:
    turn = _open_turn(session)
    call = OpenCall(turn.open_calls[event.call].call, event.effect, here.at)
    open_calls = {**turn.open_calls, event.call: call}
    turn = replace(turn, last_done=here, last_kind=type(event).__name__, open_calls=open_calls)
    return replace(session, turn=turn)


@TURN_EVENTS.on(ToolCallFinished)
def _tool_call_finished(session: Session, event: ToolCallFinished, here: EventRef) -> Session:
    turn = session.turn
    step = WHOLE_TURN - 1 if turn is None else turn.step
    result = ToolResult(event.turn, event.call, event.tool, event.outcome, event.output, step)
    messages, visible = added(session, [result])
    if turn is not None:
        turn = replace(
            turn,
            last_done=here,
            last_kind=type(event).__name__,
            open_calls={call: open_call for call, open_call in turn.open_calls.items() if call != event.call},
            files=(*turn.files, *event.files),
            resumes=0,
            nodes_lost=0,
        )
    return replace(session, turn=turn, messages=messages, visible=visible)


@TURN_EVENTS.on(AgentAttached)
def _agent_attached(session: Session, event: AgentAttached, _: EventRef) -> Session:
    return replace(session, attached=event)


@TURN_EVENTS.on(SessionAdopted)
def _session_adopted(session: Session, event: SessionAdopted, here: EventRef) -> Session:
    return replace(session, adopted=event, first_input=here, last_active=here)  # what is imported is no activity


@TURN_EVENTS.on(AgentPlanned)
def _agent_planned(session: Session, event: AgentPlanned, here: EventRef) -> Session:
    turn = replace(_open_turn(session), last_done=here, last_kind=type(event).__name__)
    return replace(session, turn=turn, plan=event)


@TURN_EVENTS.on(DriverOutputRead)
def _driver_output_read(session: Session, event: DriverOutputRead, _: EventRef) -> Session:
    return replace(session, output_read=event)


# --- what several of them do --------------------------------------------------------------------


def _open_turn(session: Session) -> Turn:
    if session.turn is None:
        raise ValueError(f"session {session.id}: an event of a turn, but no turn is open")
    return session.turn


def _dismiss(session: Session, turn: int) -> Session:
    """Return the session after a person saw that this turn failed."""
    last = session.last_turn
    if last is None or last.number != turn:
        return session
    return replace(session, last_turn=replace(last, dismissed=True))


def _without_digest(session: Session) -> Session:
    """Return the session in which a person's choice of the digest is over."""
    if not session.chapter.use_digest:
        return session
    return with_chapter(session, replace(session.chapter, use_digest=False))


def _without_hand_over(session: Session) -> Session:
    """Return the session without the note for its next chapter, which would be out of date."""
    if session.chapter.hand_over is None and not session.chapter.hand_over_failures:
        return session
    return with_chapter(session, replace(session.chapter, hand_over=None, hand_over_failures=0))
