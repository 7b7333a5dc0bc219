"""What a conversation is shown as: the items that `transcript.py` makes from the records of a session.

An item is begun by one event, whose version and time it carries; later events complete it, in place. Items stay in
the order of their versions. They are data for every client (terminal, export, dashboard) and contain no layout.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeVar, get_args

import msgspec

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
    Survivor,
    ToolResultsTrimmed,
)
from holdfast.domain.events.external_agent import AgentAttached, AgentPlanned, SessionAdopted
from holdfast.domain.events.parts import ShownArgument, Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.run_binding import RunBound, RunReleased
from holdfast.domain.events.session import (
    AgentChosen,
    FailureDismissed,
    FinishReason,
    InputRevised,
    ModeChosen,
    ModelFailed,
    ModelInterrupted,
    ModelResponded,
    NodeChosen,
    Outcome,
    Purpose,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    SessionTellSet,
    StopRequested,
    ToolCallFinished,
    TurnBackgrounded,
    TurnResumed,
    TurnSuspended,
    TurnUndone,
)

INTERRUPTED_REASON = "it was interrupted"
LENGTH_LIMIT = "the model's length limit"
I = TypeVar("I", bound="TranscriptItem")  # noqa: E741
MessageState = Literal["queued", "taken", "joined", "withdrawn"]
"""Waiting in the queue, taken by a turn that began with it, joined a turn that ran, or taken back by a person."""
StepState = Literal["live", "done", "cut", "failed"]
CallState = Literal["pending", "running", "done", "started", "failed", "stopped", "unknown"]
"""`started`: what it started continues in the background. `unknown`: it may or may not have happened."""
SummaryState = Literal["running", "done", "failed"]
NoticeEvent = (
    SessionCreated
    | SessionRenamed
    | SessionArchived
    | SessionRestored
    | SessionPinned
    | SessionTellSet
    | SessionAdopted
    | AgentAttached
    | AgentChosen
    | ModeChosen
    | NodeChosen
    | AgentPlanned
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
NOTICES: tuple[type[NoticeEvent], ...] = get_args(NoticeEvent)
ChangeKind = Literal["added", "text", "call", "updated", "removed"]
"""What became of an item: it is new, its streamed text grew, one of its calls changed, something else in it did, or
it was left out again, because nothing came of it.
"""


class TranscriptItem(msgspec.Struct, kw_only=True, tag_field="item", gc=False):
    """Base of all items."""

    version: int
    """The event that began it."""
    at: int


class MessageItem(TranscriptItem, tag="message"):
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


class NoteItem(TranscriptItem, tag="note"):
    """The end of a task, as it was reported to the agent."""

    text: str
    task: str
    input: str = ""
    """Set where it waits in the queue like a message and starts a turn; else the next turn reads it."""
    state: MessageState = "taken"
    turn: int = 0
    revisions: list[InputRevised] = msgspec.field(default_factory=list)
    withdrawn_by: Actor | None = None


class ToolCallView(msgspec.Struct, kw_only=True, gc=False):
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

    def end(self, event: ToolCallFinished) -> None:
        """Take over what came of it. A command that failed makes its call a failed one."""
        self.output, self.duration_ms = event.output, event.duration_ms
        self.exit_code, self.signal, self.files, self.task = event.exit_code, event.signal, event.files, event.task
        if event.stopped:
            self.state = "stopped"
        elif event.outcome != "done":
            self.state = event.outcome
        elif event.running:
            self.state = "started"
        else:
            self.state = "failed" if event.signal or event.exit_code else "done"


class StepItem(TranscriptItem, tag="step"):
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
    thinking_ms: int = 0
    """How long it thought."""
    ended_at: int | None = None

    def end(self, event: ModelResponded | ModelInterrupted | ModelFailed, at: int) -> None:
        """Take over how its request ended."""
        self.text, self.ended_at = event.text, at
        if isinstance(event, ModelResponded):
            self.state, self.thinking, self.usage = "done", event.thinking, event.usage
            self.thinking_ms = event.thinking_ms
            self.calls = [ToolCallView(call=one.call, tool=one.tool, arguments=one.arguments) for one in event.calls]
            self.finish = event.finish_reason
            self.cut_reason = LENGTH_LIMIT if event.finish_reason == "length" else ""
        elif isinstance(event, ModelInterrupted):
            self.state, self.thinking, self.cut_reason = "cut", event.thinking, event.reason or INTERRUPTED_REASON
        else:
            self.state, self.problem = "failed", event.problem


class WaitAnswerView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a wait was answered."""

    answer: str
    by: Actor
    at: int
    note: str = ""


class WaitItem(TranscriptItem, tag="wait"):
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
    means: dict[str, str] = msgspec.field(default_factory=dict)
    """The choices that `allow`, `session` and `deny` mean, where the choices are those of an external agent."""
    answer: WaitAnswerView | None = None

    @property
    def wants_answer(self) -> bool:
        """Whether a text that is typed now answers it."""
        return self.purpose in ("question", "approval", "compaction", "login", "quota")


class ChapterItem(TranscriptItem, tag="chapter"):
    """A reset: the model's context is empty from here on."""

    chapter: int
    rule: ResetRule
    reason: str
    by: Actor
    kept: list[Survivor] = msgspec.field(default_factory=list)
    stopped: list[Survivor] = msgspec.field(default_factory=list)
    hand_over: str = ""
    hand_over_from: NoteFrom = ""
    undone: bool = False


class SummaryItem(TranscriptItem, tag="summary"):
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


class TurnEndItem(TranscriptItem, tag="turn_end"):
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
    """The model no longer sees this turn."""


class NoticeItem(TranscriptItem, tag="notice"):
    """Something else that happened in the session; `transcript_text.py` has a sentence for each kind."""

    event: NoticeEvent


QueuedItem = MessageItem | NoteItem
AnyItem = MessageItem | NoteItem | StepItem | WaitItem | ChapterItem | SummaryItem | TurnEndItem | NoticeItem


class Change(msgspec.Struct, frozen=True, gc=False):
    """What an event or a piece of text changed."""

    kind: ChangeKind
    item: AnyItem
    call: ToolCallView | None = None
    """The call that changed."""


class TurnProgress(msgspec.Struct, kw_only=True, gc=False):
    """The turn at work, and what it has used so far."""

    number: int
    started_at: int
    is_stopping: bool = False
    is_suspended: bool = False
    task: str = ""
    """The task that it became."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None

    def add_usage(self, usage: Usage) -> None:
        """Count one more model call."""
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost


def new_item(kind: type[I], record: Record, **more: Any) -> I:
    """The item that a record begins: it has the fields of the event, and those that are given."""
    event = record.event
    for name in _shared_fields(kind, type(event)):
        more[name] = getattr(event, name)
    return kind(version=record.version, at=record.at, **more)


@cache
def _shared_fields(item: type[TranscriptItem], event: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(name for name in item.__struct_fields__ if name in event.__struct_fields__)


def add_item(items: list[AnyItem], item: AnyItem) -> Change:
    """Append an item."""
    items.append(item)
    return Change("added", item)


def remove_item(items: list[AnyItem], item: AnyItem) -> Change:
    """Leave an item out again; it is one of the last."""
    place = next(place for place in reversed(range(len(items))) if items[place] is item)
    del items[place]
    return Change("removed", item)
