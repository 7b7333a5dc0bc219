"""A session as the fold of its events.

`evolve` is the only way to change a Session. It works in place, since copying the history at every
event would make a fold quadratic; it is pure in every other sense: no I/O, no clock, and the same
events always give the same state. Nobody else writes to these fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, assert_never

from holdfast.domain.events import (
    AgentChosen,
    Call,
    Effect,
    InputReceived,
    InputRevised,
    InputsJoined,
    InputWithdrawn,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    NoteReceived,
    Record,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    StopRequested,
    SystemEvent,
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
)
from holdfast.domain.fact import Problem
from holdfast.domain.message import AgentMessage, Message, Note, Part, ToolResult, UserMessage
from holdfast.domain.queue import Happened, Queue, QueuedInput, revise, take, withdraw
from holdfast.domain.task import TaskEvent, from_task

Activity = Literal["idle", "queued", "running", "waiting", "suspended"]


# --- the turn -----------------------------------------------------------------------------------


@dataclass(slots=True)
class OpenCall:
    """A tool call of the current step that has no outcome yet."""

    call: Call
    effect: Effect | None = None
    started: int | None = None
    """The effect class, once the intent was written, and when that was; None while it has not been started."""


@dataclass(slots=True)
class Turn:
    """The turn at work."""

    number: int
    started: Happened
    last: Record
    """The last thing that the worker did."""
    step: int = 0
    asked: bool = False
    """A model request of this step is open: no answer and no failure yet."""
    attempts: int = 0
    """How often the model was asked in this step."""
    answered: bool = False
    """The current step has an answer; its calls are done or in `open_calls`."""
    yielded: bool = False
    """The answer asked for nothing more: the turn is over unless somebody joins in."""
    model: str = ""
    open_calls: dict[str, OpenCall] = field(default_factory=dict)
    failed: Problem | None = None
    stop: StopRequested | None = None
    stop_asked: Happened | None = None
    suspended: str = ""
    wait: WaitOpened | None = None
    waits: int = 0
    answers: dict[str, WaitAnswered] = field(default_factory=dict)
    """What people answered to the calls of this step."""
    tokens: int = 0
    stood_still_ms: int = 0
    """How long nobody worked on it: it waited for a person, or no gateway was there."""
    resumes: int = 0
    """Crashes in a row without progress in between; a goodbye does not count."""
    interruptions: list[tuple[int, int, int, str]] = field(default_factory=list)
    """Every resume of this turn: version, time, how long nobody worked, and why."""
    task: str = ""
    """The task that it is: its session's, or its own since somebody detached it."""
    files: list[str] = field(default_factory=list)
    """The files that its tools changed, as far as they know."""
    said: str = ""
    """The last thing that the agent said."""

    @property
    def last_done(self) -> Happened:
        """Where and when the worker did something last."""
        return Happened(self.last.version, self.last.at)

    @property
    def last_kind(self) -> str:
        """And what it was."""
        return type(self.last.event).__name__


class LastTurn(Part, frozen=True):
    """How the most recent turn ended."""

    number: int
    outcome: str
    reason: str
    problem: Problem | None
    ended: Happened


@dataclass(slots=True)
class Session:
    """All that the rules need to know of one session."""

    id: str
    version: int = 0
    updated_at: int = 0
    title: str = ""
    profile: str = ""
    cwd: str = ""
    model: str = ""
    """Chosen in this session instead of the profile's own."""
    allowed: set[str] = field(default_factory=set)
    """The patterns that a person allowed for this session."""
    answered: dict[str, WaitAnswered] = field(default_factory=dict)
    """Every answer by its wait, so that a second one can be told who was first."""
    undone: set[int] = field(default_factory=set)
    put_away: Happened | None = None
    """The event that archived it, while it is."""
    pinned: bool = False
    messages: list[Message] = field(default_factory=list)
    queue: Queue = field(default_factory=list)
    notes: list[NoteReceived] = field(default_factory=list)
    """What the model will be told at the beginning of its next turn."""
    task: str = ""
    """The agent task whose work this session is."""
    turns: int = 0
    turn: Turn | None = None
    last_turn: LastTurn | None = None

    @property
    def exists(self) -> bool:
        """Whether it was created."""
        return self.version > 0

    @property
    def archived(self) -> bool:
        """Whether it is out of the default list."""
        return self.put_away is not None

    def open_call(self, call: str) -> OpenCall | None:
        """A tool call of the current step that has no outcome yet."""
        return self.turn.open_calls.get(call) if self.turn is not None else None

    @property
    def activity(self) -> Activity:
        """One word for what it is doing."""
        if self.turn is None:
            return "queued" if self.queue else "idle"
        if self.turn.wait is not None:
            return "waiting"
        return "suspended" if self.turn.suspended else "running"


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
            if session.turn is not None:
                session.turn.open_calls.pop(e.call, None)
                session.turn.files += e.files
            _progress(session, record)
        case InputReceived() as e:
            session.queue.append(QueuedInput(e, Happened(record.version, record.at)))
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
            session.turn = Turn(e.turn, Happened(record.version, record.at), record, task=session.task)
            session.messages += [Note(e.turn, note.text) for note in session.notes]
            session.notes = []
            _take(session, e.turn, e.inputs)
        case TurnFinished() as e:
            ended = Happened(record.version, record.at)
            session.last_turn = LastTurn(e.turn, e.outcome, e.reason, e.problem, ended)
            session.turn = None
            if e.outcome != "done":
                session.messages.append(Note(e.turn, f"This turn {e.outcome}: {e.reason}"))
        case InputsJoined() as e:
            turn = _turn(session)
            turn.yielded = False
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
            if turn.wait is not None and turn.wait.until is None:
                turn.stood_still_ms += record.at - turn.last.at
            _answered(session, turn, e)
            turn.resumes = 0
            turn.last = record
        case StopRequested() as e:
            if (turn_now := session.turn) is not None and turn_now.number == e.turn:
                turn_now.stop, turn_now.stop_asked = e, Happened(record.version, record.at)
        case NoteReceived() as e:
            session.notes.append(e)
        case TurnDetached() as e:
            if session.turn is not None and session.turn.number == e.turn:
                session.turn.task = e.task
        case SessionCreated() as e:
            session.title, session.profile, session.cwd, session.task = e.title, e.profile, e.cwd, e.task
        case SessionRenamed() as e:
            session.title = e.title
        case AgentChosen() as e:
            session.profile, session.model = e.profile, e.model
        case TurnUndone() as e:
            session.undone.add(e.turn)
            session.messages = [message for message in session.messages if message.turn != e.turn]
        case SessionArchived():
            session.put_away = Happened(record.version, record.at)
        case SessionRestored():
            session.put_away = None
        case SessionPinned() as e:
            session.pinned = e.pinned
        case InputRevised() as e:
            session.queue = revise(session.queue, e)
        case InputWithdrawn() as e:
            session.queue = withdraw(session.queue, e.input)
        case other:
            if isinstance(other, TaskEvent | SystemEvent):
                raise TypeError(f"{type(other).__name__} does not belong into a session")
            assert_never(other)


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
    turn = _turn(session)
    turn.said = event.text or turn.said
    turn.tokens += event.usage.input_tokens + event.usage.output_tokens
    turn.asked, turn.answered, turn.yielded = False, True, not event.calls
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
    elif wait.purpose == "resume":
        session.messages.append(Note(event.turn, f"You stood still: {wait.reason}. {event.by} said: {event.answer}."))


def _take(session: Session, turn: int, inputs: list[str]) -> None:
    taken, session.queue = take(session.queue, inputs)
    for queued in taken:
        kind = Note if from_task(queued.event.by) else UserMessage
        session.messages.append(kind(turn, queued.event.text))


def _cut_note(event: ModelInterrupted) -> str:
    if not event.text:
        return f"Your answer was cut before its first word: {event.reason}."
    return f"Your answer was cut: {event.reason}. So far you had said:\n{event.text}"


def _resume_note(event: TurnResumed) -> str:
    return f"You were interrupted ({event.cause}) and nothing was done for {event.away_ms / 1000:.0f} s. Go on."
