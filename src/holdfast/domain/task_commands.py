"""The commands about tasks, which are part of `commands.py`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.domain.command import Command, Name, NodeWord, Path, SessionMode, Text, Title
from holdfast.domain.events.parts import NotifyChoice
from holdfast.domain.events.task import Lifetime, TaskOutcome


class StartCommand(Command, frozen=True):
    """Run a command in the background: a text for the shell, or a list of words. It outlives the gateway."""

    shell: Text | None = None
    argv: Annotated[list[str], msgspec.Meta(min_length=1, max_length=10_000)] | None = None
    name: Title | None = None
    cwd: Path | None = None
    env: dict[str, str] | None = None
    """Its whole environment; by default that of the gateway without keys. It is never stored."""
    lifetime: Lifetime = "persist"
    until: Annotated[int, msgspec.Meta(ge=0)] | None = None
    session: Name | None = None
    notify: bool = False
    stdin: bool = False
    tell: NotifyChoice = "default"
    """Whether people are notified of its end."""
    node: NodeWord = ""
    """The name or label of the node on which it runs; on another one it has the environment of the gateway there."""


class StartAgent(Command, frozen=True):
    """Start an agent in the background, in its own session."""

    prompt: Text
    profile: Name | None = None
    cwd: Path | None = None
    title: Title | None = None
    session: Name | None = None
    """The session that is notified about its end."""
    mode: SessionMode = "profile"
    """What it may do at most; a stricter mode of that session holds for it too."""
    node: NodeWord = ""
    """The name or label of the nodes on which it may run."""
    notify: bool = False
    tell: NotifyChoice = "default"
    """Whether people are notified of its questions and its end."""


class RerunTask(Command, frozen=True):
    """Run an ended command or agent again, as a new task. `env` is as in `StartCommand`."""

    env: dict[str, str] | None = None


class StopTask(Command, frozen=True):
    """Stop a task. A command gets SIGTERM, and after 5 s SIGKILL; with `force` SIGKILL at once."""

    force: bool = False


class WriteTask(Command, frozen=True):
    """Write to the input of a command that keeps it open."""

    text: Annotated[str, msgspec.Meta(max_length=65_536)] = ""
    close: bool = False


class PinTask(Command, frozen=True):
    """Protect a task from pruning, or stop protecting it."""

    pinned: bool = True


class SetTaskTell(Command, frozen=True):
    """Choose whether people are notified of the end of a task, and of the questions of its agent."""

    tell: NotifyChoice


class PruneTasks(Command, frozen=True):
    """Delete ended tasks with their output. All given conditions must hold; pinned tasks are kept.

    Without `confirm` it only reports what would be deleted.
    """

    older_than_ms: Annotated[int, msgspec.Meta(ge=0)] | None = None
    larger_than: Annotated[int, msgspec.Meta(ge=0)] | None = None
    keep_last: Annotated[int, msgspec.Meta(ge=0)] | None = None
    state: TaskOutcome | None = None
    confirm: bool = False


TaskCommand = StartCommand | StartAgent | RerunTask | StopTask | WriteTask | PinTask | SetTaskTell | PruneTasks
