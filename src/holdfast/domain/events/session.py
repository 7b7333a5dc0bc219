"""What can happen to a session.

*Said* events (inputs, answers, stop) come from the sender of a command. *Done* events (turn, model, tool)
come only from the holder of the session's lease.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.domain.command import InputMode, InputSource, SessionMode
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.chapter import ChapterEvent
from holdfast.domain.events.external_agent import ExternalAgentEvent
from holdfast.domain.events.parts import (
    Call,
    Event,
    Grant,
    NotifyChoice,
    Origin,
    Rights,
    ShownArgument,
    Started,
    Usage,
)
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.run_binding import RunBindingEvent

Outcome = Literal["done", "failed", "stopped"]
CallOutcome = Literal["done", "failed", "unknown"]
Purpose = Literal["resume", "question", "approval", "retry", "compaction", "login", "quota"]
Effect = Literal["pure", "idempotent", "keyed", "unsafe"]
"""What a tool call may change, which decides what happens to one that a crash interrupted (`domain/resume.py`).

`pure` changes nothing and `idempotent` changes the same thing again: both are run again. `keyed` finds what it began by
the id of the call, such as a command, and continues with it. `unsafe` is not run again: its result is `unknown`.
"""
FinishReason = Literal["stop", "length", "tool_calls", "other"]
Interruption = Literal["shutdown", "crash", "node_lost"]


# --- said: the session itself -------------------------------------------------------------------


class SessionCreated(Event, frozen=True):
    """A conversation began."""

    session: str
    profile: str
    cwd: str
    title: str
    by: Actor
    origin: Origin = msgspec.field(default_factory=Started)
    rights: Rights | None = None
    """What limits it besides its profile, when an agent created it; null when a person did."""
    driver: str = "builtin"
    node: str = "local"
    """The node that has its directory; empty while the node that it asks for has not taken it."""
    chat: str = ""
    """The chat of another service in which it is held, as in `telegram:42`; empty for all others."""
    mode: SessionMode = "profile"
    """What its agent may do at most, besides what the profile allows."""


class SessionRenamed(Event, frozen=True):
    """A person gave it another title."""

    title: str
    by: Actor


class AgentChosen(Event, frozen=True):
    """A person chose another profile, or another model for it (empty: the profile's own)."""

    profile: str
    model: str
    by: Actor


class ModeChosen(Event, frozen=True):
    """A person chose what its agent may do at most from here on, besides what the profile allows."""

    mode: SessionMode
    by: Actor


class NodeChosen(Event, frozen=True):
    """A person chose on which node it may run, by a name or a label; empty is any node."""

    node: str
    by: Actor


class TurnUndone(Event, frozen=True):
    """The model no longer sees this turn; it stays in the log. Its effects are not undone."""

    turn: int
    by: Actor


class SessionArchived(Event, frozen=True):
    """It left the default list; nothing was deleted."""

    by: Actor


class SessionRestored(Event, frozen=True):
    """It is back in the default list."""

    by: Actor


class SessionPinned(Event, frozen=True):
    """It was pinned to the top of the list, or unpinned."""

    pinned: bool
    by: Actor


class SessionTellSet(Event, frozen=True):
    """A person chose whether people are notified of its waits and of the ends of its turns."""

    tell: NotifyChoice
    by: Actor


class InputReceived(Event, frozen=True):
    """A message was received. `input` is the id of its command."""

    input: str
    text: str
    mode: InputMode
    by: Actor
    source: InputSource = "message"
    ref: str = ""
    """What it is about: the id of the comment or of the task; of the card for a run and a reminder."""


class InputRevised(Event, frozen=True):
    """A message that no turn had taken was changed: its text, its mode, its place in the queue (from 1).

    By a person; or by the runtime, with the reason, if the agent does not take it while it works.
    """

    input: str
    by: Actor
    text: str | None = None
    mode: InputMode | None = None
    place: int | None = None
    reason: str = ""


class InputWithdrawn(Event, frozen=True):
    """A message was withdrawn before a turn had taken it: by a person, or by the board when its run ended."""

    input: str
    by: Actor


class NoteReceived(Event, frozen=True):
    """A note from the runtime, such as the end of a task. It starts no turn; the model reads it in the next one."""

    text: str
    task: str


class TurnBackgrounded(Event, frozen=True):
    """A person moved the running turn to the background: it became a task."""

    turn: int
    task: str
    by: Actor


class StopRequested(Event, frozen=True):
    """The end of a turn was requested: by a person, or by the board or the worker when its run ends."""

    turn: int
    by: Actor


class WaitAnswered(Event, frozen=True):
    """A wait was answered; `turn` continues.

    An approval is answered with `allow` (once), `call`, `session`, `always` (`grant` has
    what each of them grants) or `deny`.
    """

    turn: int
    wait: str
    answer: str
    by: Actor
    grant: Grant | None = None
    note: str = ""
    call_digest: str = ""
    """The digest of the approved call with its arguments."""


class FailureDismissed(Event, frozen=True):
    """A person has seen that this turn failed; it leaves the inbox."""

    turn: int
    by: Actor


# --- done: the turn -----------------------------------------------------------------------------


class TurnStarted(Event, frozen=True):
    """The agent took these inputs and began to work."""

    turn: int
    inputs: list[str]
    profile: str
    by_person: bool = True
    """A person asked for it, and not only the end of a task."""


class InputsJoined(Event, frozen=True):
    """Inputs that came meanwhile joined the turn between two steps."""

    turn: int
    inputs: list[str]
    by_person: bool = True


class TurnSuspended(Event, frozen=True):
    """The gateway was shut down during the turn; it resumes at the next start."""

    turn: int
    interruption: Interruption
    reason: str


class TurnResumed(Event, frozen=True):
    """The turn resumed after an interruption. `away_ms` is how long no worker worked on it.

    `attempt` counts crashes in a row without progress in between; a clean shutdown does not change it.
    """

    turn: int
    attempt: int
    interruption: Interruption
    reason: str
    away_ms: int


class WaitOpened(Event, frozen=True):
    """The turn waits until this is answered, or until its time has come.

    `resume` and `question` wait for a person, `approval` for a permission, `retry` for the time, `compaction` for a
    choice without a summary, `login` for a log-in to an external agent, `quota` until the agent has one again.
    """

    turn: int
    wait: str
    purpose: Purpose
    reason: str
    call: str = ""
    choices: list[str] = msgspec.field(default_factory=list)
    until: int | None = None
    default: str | None = None
    """The answer when the time has come."""
    pattern: str = ""
    """What an approval would cover beyond this one call."""
    shown: list[ShownArgument] = msgspec.field(default_factory=list)
    """Every argument of the call, in order, and what it would change in a file."""
    call_digest: str = ""
    """The digest of the call with its arguments and of the file that it would change."""
    means: dict[str, str] = msgspec.field(default_factory=dict)
    """The choices that `allow`, `session` and `deny` mean, where the choices are an external agent's own."""


class TurnFinished(Event, frozen=True):
    """The turn is over."""

    turn: int
    outcome: Outcome
    reason: str
    problem: Problem | None = None


class ModelRequested(Event, frozen=True):
    """A request was sent to the model. The messages are named by the version of the context, not repeated."""

    turn: int
    step: int
    attempt: int
    model: str
    context_version: int
    fixed_tokens: int = 0
    """About how many tokens the instructions and the tools are, which are part of every request."""


class ModelResponded(Event, frozen=True):
    """The whole answer of one step."""

    turn: int
    step: int
    text: str
    thinking: str
    calls: list[Call]
    finish_reason: FinishReason
    usage: Usage
    duration_ms: int
    signature: str = ""
    """The provider's signature of the thinking, which must be sent back to it."""
    thinking_ms: int = 0
    """From the request to the last of its thinking; 0 without any."""


class ModelInterrupted(Event, frozen=True):
    """An interrupted answer: `text` is what had arrived. The step has not ended."""

    turn: int
    step: int
    text: str
    thinking: str
    reason: str


class ModelFailed(Event, frozen=True):
    """The model gave no whole answer; `text` is what had arrived of it."""

    turn: int
    step: int
    problem: Problem
    text: str = ""


class ToolCallStarted(Event, frozen=True):
    """The intent, written before the effect."""

    turn: int
    call: str
    tool: str
    effect: Effect


class ToolCallFinished(Event, frozen=True):
    """How a call ended. `unknown` is a state: it may or may not have taken effect."""

    turn: int
    call: str
    tool: str
    outcome: CallOutcome
    output: str
    duration_ms: int
    files: list[str] = msgspec.field(default_factory=list)
    """The files that it changed, as far as is known."""
    task: str = ""
    """The command or the agent that it started."""
    exit_code: int | None = None
    """Of the command that it waited for; null when there was none, or a signal ended it."""
    signal: str = ""
    """The signal that ended the command, as in `SIGKILL`."""
    stopped: bool = False
    """It was stopped while it ran: its turn, or its command."""
    running: bool = False
    """What it started continues in the background: the call has ended, the `task` has not."""


SessionEvent = (
    ModelResponded
    | ToolCallFinished
    | InputReceived
    | ToolCallStarted
    | ModelRequested
    | TurnStarted
    | TurnFinished
    | InputsJoined
    | ModelInterrupted
    | ModelFailed
    | TurnSuspended
    | TurnResumed
    | WaitOpened
    | WaitAnswered
    | StopRequested
    | NoteReceived
    | TurnBackgrounded
    | TurnUndone
    | AgentChosen
    | ModeChosen
    | NodeChosen
    | FailureDismissed
    | SessionCreated
    | SessionRenamed
    | SessionArchived
    | SessionRestored
    | SessionPinned
    | SessionTellSet
    | InputRevised
    | InputWithdrawn
    | ChapterEvent
    | ExternalAgentEvent
    | RunBindingEvent
)
