"""What every command of this home begins with, and the order that a keeper gets for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.domain.errors import Rejected
from holdfast.domain.events.task import TaskStarted
from holdfast.processes.command import HEAD_BYTES, TAIL_BYTES, CommandSpec
from holdfast.secrets import Mask
from holdfast.tasks.sandbox import SandboxBuilder, SandboxPolicy


@dataclass(frozen=True, slots=True)
class CommandDefaults:
    """What all commands of a home share."""

    root: Path
    """Where the directories of tasks are."""
    environment: Callable[[], dict[str, str]]
    umask: int
    """The user's own: what commands make is theirs, not ours."""
    mask: Mask
    sandbox: SandboxBuilder | None = None
    """Who builds the sandboxes of agents' commands; None builds none."""

    def spec(self, started: TaskStarted, env: Mapping[str, str] | None) -> CommandSpec:
        """What the keeper gets, all from the intent but the environment."""
        return CommandSpec(
            id=started.task,
            run=tuple(started.argv) or started.command,
            cwd=Path(started.cwd),
            env=self.environment() if env is None else env,
            umask=self.umask,
            stdin="pipe" if started.stdin else "nothing",
            head=HEAD_BYTES if started.head is None else started.head,
            tail=TAIL_BYTES if started.tail is None else started.tail,
            sandbox=self._sandbox_arguments(started),
        )

    def _sandbox_arguments(self, started: TaskStarted) -> tuple[str, ...]:
        if started.sandbox is None:
            return ()
        if self.sandbox is None or self.sandbox.problem:
            why = "none can be built here" if self.sandbox is None else self.sandbox.problem
            raise Rejected(f"The command belongs into a sandbox, and there is none now: {why}.")
        return self.sandbox.arguments(started.sandbox)

    def confine(self, started: TaskStarted, policy: SandboxPolicy, *, workspace: Path, own: Path | None) -> TaskStarted:
        """The intent with its sandbox, or why it has none; `Rejected` if it must have one. Call it in a thread."""
        if self.sandbox is None:
            return started
        found = self.sandbox.spec(policy, workspace=workspace, own=own, session=started.session)
        if isinstance(found, str):
            return msgspec.structs.replace(started, no_sandbox=found)
        return msgspec.structs.replace(started, sandbox=found)
