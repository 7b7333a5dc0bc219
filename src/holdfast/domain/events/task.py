"""What can happen to a task: one entry of background work, written when it starts and kept until it is pruned."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.domain.events.actor import Actor
from holdfast.domain.events.parts import Event, EventPart, NotifyChoice

TaskKind = Literal["process", "agent", "card"]
TaskState = Literal["running", "done", "failed", "stopped", "lost"]
TaskOutcome = Literal["done", "failed", "stopped", "lost"]
Lifetime = Literal["chapter", "session", "persist", "until"]


class SandboxSpec(EventPart, frozen=True):
    """What a command in a sandbox may change; everything else is read-only, and keys are hidden."""

    writable: list[str]
    """Directories and files, by their real paths; the working directory comes first."""
    read_only: list[str] = msgspec.field(default_factory=list)
    """What stays read-only inside of them."""
    opened: list[str] = msgspec.field(default_factory=list)
    """Files with keys that are not hidden from it: those of an external agent itself."""
    network: bool = True
    tmp: str = ""
    """The directory that it sees as `/tmp`; empty is a private one that is removed when it ends."""


class AgentProcess(EventPart, frozen=True):
    """The process of an external agent: where it works, and what it needs besides its command line."""

    session: str
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables with their values, none of which is a secret."""
    variables: list[str] = msgspec.field(default_factory=list)
    """The names of further variables, which it gets from the environment of the gateway."""
    piped: bool = False
    """Whether its output must be a pipe, since the agent refuses a file."""
    card: str = ""
    run: int = 0
    """The card and its run whose token it gets in a variable; the token itself is in no log."""


class TaskStarted(Event, frozen=True):
    """The intent, written before anything runs."""

    task: str
    task_kind: TaskKind
    title: str
    command: str
    """The command line, or the prompt of the agent."""
    cwd: str
    by: Actor
    argv: list[str] = msgspec.field(default_factory=list)
    """The command word by word; empty when a shell reads `command`."""
    session: str = ""
    """The session that started it, from a tool call or a chat."""
    call: str = ""
    worker: str = ""
    """The session in which its agent works."""
    foreground: bool = False
    """A turn waits for it."""
    lifetime: Lifetime = "persist"
    until: int | None = None
    notify: bool = False
    """Whether its end wakes the session that started it."""
    stdin: bool = False
    """Whether its standard input stays open for writing; else it is empty."""
    head: int | None = None
    tail: int | None = None
    """How many bytes are kept of a long output; null is the usual."""
    own_environment: bool = False
    """Whether it has the environment of its caller; else the gateway's own without keys. Neither is stored here."""
    node: str = "local"
    """The machine on which it runs."""
    left_by: str = ""
    """The task whose command ended and left these processes behind."""
    sandbox: SandboxSpec | None = None
    """The sandbox in which the command runs; null is none."""
    no_sandbox: str = ""
    """Why a command of an agent runs without one."""
    tell: NotifyChoice = "default"
    """Whether people are notified of its end."""
    agent: AgentProcess | None = None
    """The external agent whose process this is; null for any other command."""


class ProcessStarted(Event, frozen=True):
    """The command runs. The file beside its output identifies the process beyond its pid."""

    task: str
    pid: int


class TaskBackgrounded(Event, frozen=True):
    """No turn waits for it any longer: it continues in the background."""

    task: str
    reason: str


class TaskResumed(Event, frozen=True):
    """Its agent received another message, and works again."""

    task: str
    turn: int


class TaskLifetimeSet(Event, frozen=True):
    """A person changed how long it may run."""

    task: str
    lifetime: Lifetime
    by: Actor


class TaskStopRequested(Event, frozen=True):
    """A person, an agent or a rule asked for its end; stored before the first signal."""

    task: str
    by: Actor
    reason: str
    force: bool


class TaskPinned(Event, frozen=True):
    """It was protected from pruning, or no longer is."""

    task: str
    pinned: bool
    by: Actor


class TaskTellSet(Event, frozen=True):
    """A person chose whether people are notified of its end."""

    task: str
    tell: NotifyChoice
    by: Actor


class CommandExited(EventPart, frozen=True, tag_field="type", tag="exited"):
    """A command ended by itself."""

    code: int
    evidence: str = ""
    """How that is known."""


class CommandKilled(EventPart, frozen=True, tag_field="type", tag="killed"):
    """A signal ended a command."""

    signal: str
    """As in `SIGKILL`."""
    evidence: str = ""


class CommandNeverStarted(EventPart, frozen=True, tag_field="type", tag="never_started"):
    """A command did not run at all."""

    cause: str
    hint: str = ""


class CommandLost(EventPart, frozen=True, tag_field="type", tag="lost"):
    """It is not known how a command ended."""

    evidence: str
    """Why it is not known."""


class TurnEnded(EventPart, frozen=True, tag_field="type", tag="turn_ended"):
    """The agent ended the turn, which was its work."""

    session: str
    turn: int


class RunEnded(EventPart, frozen=True, tag_field="type", tag="run_ended"):
    """The run of a card ended, which was its work."""

    card: str
    run: int
    card_number: int = 0
    """The number of the card; 0 in events of earlier versions."""


TaskEnd = CommandExited | CommandKilled | CommandNeverStarted | CommandLost | TurnEnded | RunEnded


class TaskFinished(Event, frozen=True):
    """How it ended. What cannot be known is null, never invented."""

    task: str
    outcome: TaskOutcome
    reason: str
    end: TaskEnd
    ended_at: int | None = None
    """When it ended, if a keeper recorded that: this event may be written much later."""
    output_bytes: int = 0
    dropped_bytes: int = 0
    preview: str = ""
    output: str | None = None
    """All of it, as older versions wrote it. Now it is in the result of the call that waited for it, or in its file."""
    summary: str = ""
    files: list[str] | None = None
    """The files that it changed; null is not known."""
    base_commit: str = ""
    """The commit of its git repository when it began; empty if that is not known."""
    survivors: list[str] = msgspec.field(default_factory=list)
    """Its processes that still run: daemons that it left behind, or processes that could not be killed."""


class TaskPruned(Event, frozen=True):
    """A task, its output and its events were deleted by a person or a rule."""

    task: str
    title: str
    state: TaskState
    bytes: int
    by: Actor


TaskEvent = (
    TaskStarted
    | ProcessStarted
    | TaskBackgrounded
    | TaskResumed
    | TaskLifetimeSet
    | TaskStopRequested
    | TaskPinned
    | TaskTellSet
    | TaskFinished
)
