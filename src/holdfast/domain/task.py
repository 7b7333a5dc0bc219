"""Tasks: one entry for each piece of background work, whatever does it, and its rules.

A task is written down when it starts, not when it ends, and stays until somebody prunes it. Its stream
is `task/<id>`; a session only refers to it.
"""

from __future__ import annotations

from hashlib import blake2s
from typing import Literal

import msgspec

from holdfast.domain.fact import Event, EventPart

TaskKind = Literal["process", "agent", "card"]
TaskState = Literal["running", "done", "failed", "stopped", "lost"]
TaskOutcome = Literal["done", "failed", "stopped", "lost"]
Lifetime = Literal["chapter", "session", "persist", "until"]

NEVER_STARTED = "never started"
TITLE = 80
INLINE = 32_768
"""So much output is kept in the event of a command that a turn waited for."""
PREVIEW = 200


class SandboxSpec(EventPart, frozen=True):
    """What a command in a sandbox may change; everything else is read-only, and keys are hidden."""

    writable: list[str]
    """Directories and files, by their real paths; the working directory comes first."""
    read_only: list[str] = msgspec.field(default_factory=list)
    """What stays read-only inside of them."""
    network: bool = True
    tmp: str = ""
    """The directory that it sees as `/tmp`; empty is one that nobody else sees and that ends with it."""


class TaskStarted(Event, frozen=True):
    """The intent, written before anything runs."""

    task: str
    of: TaskKind
    title: str
    command: str
    """The command line, or what the agent was told."""
    cwd: str
    by: str
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
    """Whether its input stays open for whoever writes to it; else there is nothing to read."""
    head: int | None = None
    tail: int | None = None
    """How many bytes are kept of a long output; null is the usual."""
    own_environment: bool = False
    """It has the environment of whoever started it; else the gateway's own, without keys. Neither is written here."""
    left_by: str = ""
    """The task whose command ended and left these processes behind."""
    sandbox: SandboxSpec | None = None
    """The sandbox in which the command runs; null is none."""
    no_sandbox: str = ""
    """Why a command of an agent runs without one."""


class ProcessStarted(Event, frozen=True):
    """The command runs. Who it is for certain stands beside its output."""

    task: str
    pid: int


class TaskDetached(Event, frozen=True):
    """Nobody waits for it any more: it goes on in the background."""

    task: str
    reason: str


class TaskContinued(Event, frozen=True):
    """Its agent was told more, and works again."""

    task: str
    turn: int


class TaskKept(Event, frozen=True):
    """A person wants it to outlive what it would have ended with."""

    task: str
    lifetime: Lifetime
    by: str


class TaskStopRequested(Event, frozen=True):
    """Somebody or a rule wants its end; written before the first signal."""

    task: str
    by: str
    reason: str
    force: bool


class TaskPinned(Event, frozen=True):
    """It is kept whatever is pruned, or not any more."""

    task: str
    pinned: bool
    by: str


class TaskFinished(Event, frozen=True):
    """What came of it. What nobody can know is null, never invented."""

    task: str
    outcome: TaskOutcome
    reason: str
    exit_code: int | None = None
    signal: str = ""
    evidence: str = ""
    """How the end is known, or why it is not."""
    ended_at: int | None = None
    """When it ended, where somebody saw it who was not us: this may be written much later."""
    output_bytes: int = 0
    dropped_bytes: int = 0
    preview: str = ""
    output: str | None = None
    """All of it, when it is small and nobody else keeps it."""
    summary: str = ""
    files: list[str] | None = None
    """The files that it changed; null is not known."""
    survivors: list[str] = msgspec.field(default_factory=list)
    """Its processes that are still there: daemons that it left behind, or who cannot be killed."""


class TaskPruned(Event, frozen=True):
    """A task, its output and its events were deleted because somebody or a rule asked for it."""

    task: str
    title: str
    state: TaskState
    bytes: int
    by: str


TaskEvent = (
    TaskStarted
    | ProcessStarted
    | TaskDetached
    | TaskContinued
    | TaskKept
    | TaskStopRequested
    | TaskPinned
    | TaskFinished
)


def sandbox_in_words(started: TaskStarted) -> str:
    """The sandbox of a command, or why one of an agent has none; empty where there is nothing to say."""
    spec = started.sandbox
    if spec is None:
        return f"It has no sandbox: {started.no_sandbox}." if started.no_sandbox else ""
    network = "with" if spec.network else "without"
    return f"It has a sandbox, {network} network: it can write to {', '.join(spec.writable) or 'nothing'} and its /tmp."


def task_stream(task: str) -> str:
    """The name of a task's stream."""
    return "task/" + task


def task_of_call(session: str, call: str) -> str:
    """The task of a tool call, the same for whoever computes it: so a call is found again and not repeated."""
    return blake2s(f"{session}/{call}/1".encode(), digest_size=8).hexdigest()


def task_of_left(task: str) -> str:
    """The task of what a command left behind, the same for whoever computes it."""
    return blake2s(f"{task}/left".encode(), digest_size=8).hexdigest()


def task_title(text: str) -> str:
    """One line for lists."""
    line = " ".join(text[: 4 * TITLE].split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"


def command_outcome(*, code: int | None, signal: str, lost: str, stopped: str) -> tuple[TaskOutcome, str]:
    """One word for the end of a command, and the reason in plain words.

    `stopped` says on whose word it was ended, if it was; `lost` why nobody knows how it ended, if nobody does.
    """
    if lost:
        return "lost", f"{stopped}, and how it ended is not known: {lost}" if stopped else lost
    how = f"killed by {signal}" if signal else f"exit code {code}"
    if stopped:
        return "stopped", f"{stopped}: {how}"
    return ("done" if code == 0 else "failed"), how


def end_note(task: str, title: str, finished: TaskFinished, *, of: TaskKind) -> str:
    """What the session that started it is told when it ends."""
    word = "command" if of == "process" else "agent"
    lines = [f"The background {word} {task} ({title}) ended as {finished.outcome}: {finished.reason}."]
    if finished.summary:
        lines.append(f"It said: {finished.summary}")
    elif finished.preview:
        lines.append(f"Its output ends with: {finished.preview}")
    if finished.files:
        lines.append(f"Files changed: {', '.join(finished.files)}")
    lines.append(f"(`process log {task}` has all of it.)" if of == "process" else f"(Task {task}.)")
    return "\n".join(lines)


def is_from_task(by: str) -> bool:
    """Whether a message is the runtime's word about a task, and no person's."""
    return by.startswith("task ")


def agent_of(session: str) -> str:
    """How an agent is called that starts something."""
    return f"{AN_AGENT}{session}"


THE_CLOCK, THE_RUNTIME, THE_RESET_CLOCK, THE_BOARD = "the clock", "the runtime", "the reset clock", "the board"
AN_AGENT = "the agent of session "


def is_person(by: str) -> bool:
    """Whether a person said it, from whatever client; not the runtime in its own name, nor an agent."""
    ours = by in (THE_CLOCK, THE_RUNTIME, THE_RESET_CLOCK, THE_BOARD)
    return not ours and not is_from_task(by) and not by.startswith(AN_AGENT)
