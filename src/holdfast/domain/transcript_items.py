"""What a conversation is shown as: the items that `transcript.py` makes from the records of a session.

An item is begun by one event, whose version and time it carries; later events complete it. Items stay in the order
of their versions. They are data for every client (terminal, export, dashboard) and contain no layout.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.domain.command import InputMode, InputSource
from holdfast.domain.events import Record
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.chapter import (
    ChapterRejoined,
    NoteFrom,
    ResetPolicySet,
    ResetPostponed,
    ResetRule,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
    Survivor,
    ToolResultsTrimmed,
)
from holdfast.domain.events.parts import ShownArgument, Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    AgentChosen,
    FailureDismissed,
    FinishReason,
    InputRevised,
    ModelFailed,
    ModelInterrupted,
    ModelResponded,
    Outcome,
    Purpose,
    RunBound,
    RunReleased,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    StopRequested,
    ToolCallFinished,
    ToolCallStarted,
    TurnBackgrounded,
    TurnResumed,
    TurnSuspended,
    TurnUndone,
)

INTERRUPTED = "it was interrupted"
LENGTH_LIMIT = "the model's length limit"
I = TypeVar("I", bound=msgspec.Struct)  # noqa: E741
MessageState = Literal["queued", "taken", "joined", "withdrawn"]
"""Waiting in the queue, taken by a turn that began with it, joined a turn that ran, or taken back by a person."""
StepState = Literal["live", "done", "cut", "failed"]
CallState = Literal["pending", "running", "done", "started", "failed", "stopped", "unknown"]
"""`started`: what it started goes on in the background. `unknown`: it may or may not have happened."""
SummaryState = Literal["running", "done", "failed"]
NoticeEvent = (
    SessionCreated
    | SessionRenamed
    | SessionArchived
    | SessionRestored
    | SessionPinned
    | AgentChosen
    | FailureDismissed
    | StopRequested
    | TurnBackgrounded
    | TurnSuspended
    | TurnResumed
    | TurnUndone
    | RunBound
    | RunReleased
    | ResetPolicySet
    | ResetPostponed
    | ChapterRejoined
    | ToolResultsTrimmed
    | SummaryRequested
    | SummaryFailed
)
"""Events that are one line of their own. A `SessionCreated` is one only for a fork, a `SummaryFailed` only where it is
about the note for the next chapter.
"""


class TranscriptItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="item", gc=False):
    """Base of all items."""

    version: int
    """The event that began it."""
    at: int


class MessageItem(TranscriptItem, frozen=True, tag="message"):
    """Something that was said to the agent: by a person, by the board, or by a comment on the card."""

    input: str
    text: str
    """As it reads now."""
    by: Actor
    mode: InputMode
    source: InputSource
    ref: str = ""
    state: MessageState = "queued"
    turn: int = 0
    """The turn that took it; 0 while none has."""
    revisions: list[InputRevised] = msgspec.field(default_factory=list)
    withdrawn_by: Actor | None = None


class NoteItem(TranscriptItem, frozen=True, tag="note"):
    """The end of a task, as it was reported to the agent."""

    text: str
    task: str
    input: str = ""
    """Set where it waits in the queue like a message and starts a turn; else the next turn reads it."""
    state: MessageState = "taken"
    turn: int = 0
    revisions: list[InputRevised] = msgspec.field(default_factory=list)
    withdrawn_by: Actor | None = None


class ToolCallView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool call of a step, and what became of it."""

    call: str
    tool: str
    arguments: str = ""
    state: CallState = "pending"
    started_at: int | None = None
    duration_ms: int | None = None
    output: str = ""
    exit_code: int | None = None
    signal: str = ""
    files: list[str] = msgspec.field(default_factory=list)
    task: str = ""


class StepItem(TranscriptItem, frozen=True, tag="step"):
    """One request to the model, and what it answered: text, thinking and tool calls."""

    turn: int
    step: int
    profile: str
    model: str
    text: str = ""
    thinking: str = ""
    calls: list[ToolCallView] = msgspec.field(default_factory=list)
    state: StepState = "live"
    cut_reason: str = ""
    """Why the answer is not whole."""
    problem: Problem | None = None
    finish: FinishReason | None = None
    usage: Usage | None = None
    ended_at: int | None = None


class WaitAnswerView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a wait was answered."""

    answer: str
    by: Actor
    at: int
    note: str = ""


class WaitItem(TranscriptItem, frozen=True, tag="wait"):
    """A turn waits: for an answer, a permission, or for the time of the next attempt."""

    wait: str
    turn: int
    purpose: Purpose
    reason: str
    call: str = ""
    choices: list[str] = msgspec.field(default_factory=list)
    until: int | None = None
    default: str | None = None
    pattern: str = ""
    shown: list[ShownArgument] = msgspec.field(default_factory=list)
    answer: WaitAnswerView | None = None

    @property
    def wants_answer(self) -> bool:
        """Whether a text that is typed now answers it."""
        return self.purpose in ("question", "approval", "compaction")


class ChapterItem(TranscriptItem, frozen=True, tag="chapter"):
    """A reset: the model's context begins anew here."""

    chapter: int
    rule: ResetRule
    reason: str
    by: Actor
    kept: list[Survivor] = msgspec.field(default_factory=list)
    stopped: list[Survivor] = msgspec.field(default_factory=list)
    hand_over: str = ""
    hand_over_from: NoteFrom = ""
    undone: bool = False


class SummaryItem(TranscriptItem, frozen=True, tag="summary"):
    """The context was made shorter, is being made so, or could not be. Attempts in a row are one item."""

    state: SummaryState
    covers_turn: int
    covers_step: int
    attempt: int = 0
    source: Literal["model", "digest"] = "model"
    model: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    reason: str = ""
    summary: str = ""
    problem: Problem | None = None
    retry_at: int | None = None
    replaced: bool = False
    """A digest that a summary has replaced."""


class TurnEndItem(TranscriptItem, frozen=True, tag="turn_end"):
    """A turn is over."""

    turn: int
    outcome: Outcome
    reason: str
    problem: Problem | None
    started_at: int
    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None
    undone: bool = False
    """The model does not see this turn any more."""


class NoticeItem(TranscriptItem, frozen=True, tag="notice"):
    """Something else that happened in the session; `transcript_text.py` has a sentence for each kind."""

    event: NoticeEvent


QueuedItem = MessageItem | NoteItem
AnyItem = MessageItem | NoteItem | StepItem | WaitItem | ChapterItem | SummaryItem | TurnEndItem | NoticeItem


def call_state(event: ToolCallFinished) -> CallState:
    """How a call ended, as people see it: a command that failed makes its call a failed one."""
    if event.stopped:
        return "stopped"
    if event.outcome != "done":
        return event.outcome
    if event.running:
        return "started"
    return "failed" if event.signal or event.exit_code else "done"


def ended_step(step: StepItem, event: ModelResponded | ModelInterrupted | ModelFailed, at: int) -> StepItem:
    """The step after the event that ended its request."""
    match event:
        case ModelResponded():
            return replace(
                step,
                text=event.text,
                thinking=event.thinking,
                calls=[new_item(ToolCallView, call) for call in event.calls],
                state="done",
                cut_reason=LENGTH_LIMIT if event.finish_reason == "length" else "",
                finish=event.finish_reason,
                usage=event.usage,
                ended_at=at,
            )
        case ModelInterrupted():
            return replace(
                step,
                text=event.text,
                thinking=event.thinking,
                state="cut",
                cut_reason=event.reason or INTERRUPTED,
                ended_at=at,
            )
        case ModelFailed():
            return replace(step, text=event.text, state="failed", problem=event.problem, ended_at=at)


def changed_call(call: ToolCallView, event: ToolCallStarted | ToolCallFinished, at: int) -> ToolCallView:
    """The call after it began or ended."""
    if isinstance(event, ToolCallStarted):
        return replace(call, state="running", started_at=at)
    return new_item(ToolCallView, event, arguments=call.arguments, state=call_state(event), started_at=call.started_at)


def summary_item(event: SummaryStarted | SummaryWritten | SummaryFailed, record: Record) -> SummaryItem:
    """The item of a summary after one event, as if it were the first."""
    match event:
        case SummaryStarted():
            return begin(SummaryItem, record, state="running", tokens_before=event.tokens)
        case SummaryFailed():
            return begin(SummaryItem, record, state="failed")
        case SummaryWritten():
            return begin(SummaryItem, record, state="done")


def begin(kind: type[I], record: Record, **more: Any) -> I:
    """The item that a record begins: it has the fields of the event, and those that are given."""
    return new_item(kind, record.event, version=record.version, at=record.at, **more)


def new_item(kind: type[I], event: object, **more: Any) -> I:
    """A struct with the fields that the event has too, and those that are given."""
    shared = {name: getattr(event, name) for name in kind.__struct_fields__ if hasattr(event, name)}
    return kind(**shared | more)
