"""What the commands of a home have in common, and the `CommandSpec` of each."""

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
    """What the commands of a home have in common."""

    root: Path
    """The directory that has the directories of tasks."""
    environment: Callable[[], dict[str, str]]
    umask: int
    """The user's own umask, for files that commands create."""
    mask: Mask
    sandbox: SandboxBuilder | None = None
    """Builds the sandboxes of agents' commands; with None they have none."""

    def spec(self, started: TaskStarted, env: Mapping[str, str] | None) -> CommandSpec:
        """Return what is to be run, from the intent and the environment."""
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
        """Return the intent with its sandbox, or with why it has none; `Rejected` if it must have one. Blocks."""
        if self.sandbox is None:
            return started
        found = self.sandbox.spec(policy, workspace=workspace, own=own, session=started.session)
        if isinstance(found, str):
            return msgspec.structs.replace(started, no_sandbox=found)
        return msgspec.structs.replace(started, sandbox=found)
