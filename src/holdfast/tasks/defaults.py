"""How a task becomes a `CommandSpec`: directory, environment, umask and sandbox."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.config import command_environment
from holdfast.domain.errors import Rejected, Unavailable
from holdfast.domain.events.task import AgentProcess, TaskStarted
from holdfast.external_agent_files import AgentFiles
from holdfast.processes.command import HEAD_BYTES, TAIL_BYTES, CommandSpec
from holdfast.processes.keeper import sync_directory
from holdfast.profiles import Profiles
from holdfast.tasks.sandbox import SandboxBuilder, SandboxPolicy
from holdfast.worker_access import TOKEN_VARIABLE, RunToken, WorkerAccess


@dataclass(frozen=True, slots=True)
class CommandDefaults:
    """Settings that all commands of a home share."""

    root: Path
    """The directory with one directory per task."""
    profiles: Profiles
    umask: int
    """The user's own umask, for files that commands create."""
    sandbox: SandboxBuilder | None = None
    """Builds the sandboxes of agents' commands; None for no sandboxes."""
    access: WorkerAccess | None = None
    """Gives external workers their tokens."""

    def spec(self, started: TaskStarted, env: Mapping[str, str] | None) -> CommandSpec:
        """Return what to run."""
        if started.agent is not None:
            return self._agent_spec(started, started.agent)
        return CommandSpec(
            id=started.task,
            run=tuple(started.argv) or started.command,
            cwd=Path(started.cwd),
            env=command_environment(self.profiles.settings.hidden_names) if env is None else env,
            umask=self.umask,
            stdin="pipe" if started.stdin else "nothing",
            head=HEAD_BYTES if started.head is None else started.head,
            tail=TAIL_BYTES if started.tail is None else started.tail,
            sandbox=self._sandbox_arguments(started),
        )

    def _agent_spec(self, started: TaskStarted, agent: AgentProcess) -> CommandSpec:
        """Return the process of an external agent: its input stays in a file, and none of its output is dropped
        before it was read.
        """
        secrets = self.profiles.settings.hidden_names - {*agent.variables}
        token: dict[str, str] = {}
        if agent.run and self.access is not None:
            token[TOKEN_VARIABLE] = self.access.token(RunToken(agent.card, agent.run, agent.session))
        return CommandSpec(
            id=started.task,
            run=tuple(started.argv),
            cwd=Path(started.cwd),
            env=command_environment(secrets) | agent.env | token,
            umask=self.umask,
            stdin="file",
            stdout="pipe" if agent.piped else "file",
            stderr="apart",
            head=0,
            tail=None,
            sandbox=self._sandbox_arguments(started),
        )

    def _sandbox_arguments(self, started: TaskStarted) -> tuple[str, ...]:
        if started.sandbox is None:
            return ()
        if self.sandbox is None or self.sandbox.problem:
            why = "sandboxes are not available" if self.sandbox is None else self.sandbox.problem
            raise Rejected(f"The command must run in a sandbox, which is not possible now: {why}.")
        return self.sandbox.arguments(started.sandbox)

    def confine(
        self,
        started: TaskStarted,
        policy: SandboxPolicy,
        *,
        workspace: Path,
        own: Path | None,
        agent: AgentFiles | None = None,
    ) -> TaskStarted:
        """Add the sandbox, or the reason why there is none. `Rejected` if there must be one. Blocks.

        `agent` has the files of an external agent.
        """
        if self.sandbox is None:
            return started
        if agent is not None and (policy.mode != "off" or not policy.network) and not self.sandbox.problem:
            policy = self.sandbox.for_agent(policy, agent)
        session = started.agent.session if started.agent is not None else started.session  # whose `/tmp` it sees
        found = self.sandbox.spec(policy, workspace=workspace, own=own, session=session)
        if isinstance(found, str):
            return msgspec.structs.replace(started, no_sandbox=found)
        return msgspec.structs.replace(started, sandbox=found)


DIRECTORY = ".environments"
_decode = msgspec.json.Decoder(dict[str, str]).decode


class Environments:
    """The environments of people's commands between their acceptance and their start.

    An accepted command is started even if the gateway is killed, and with the environment that it was accepted with.
    That may hold secrets, so it is not in the log: it is a file that only the user can read, deleted as soon as the
    command has begun.
    """

    def __init__(self, root: Path) -> None:
        self._root = root / DIRECTORY

    def keep(self, task: str, environment: Mapping[str, str]) -> None:
        """Store an environment durably."""
        self._root.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(self._root / task, flags, 0o600), "wb") as file:
            file.write(msgspec.json.encode(dict(environment)))
            file.flush()
            os.fsync(file.fileno())
        sync_directory(str(self._root))

    async def keep_beside_loop(self, task: str, environment: Mapping[str, str]) -> None:
        """The same in a thread. Unavailable if it cannot be stored."""
        try:
            await asyncio.to_thread(self.keep, task, environment)
        except OSError as error:
            raise Unavailable(f"Its environment could not be kept for the start: {error.strerror}.") from error

    def read(self, task: str) -> dict[str, str] | None:
        """Return an environment; None if there is none or it cannot be read."""
        try:
            with os.fdopen(os.open(self._root / task, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                return _decode(file.read())
        except (OSError, msgspec.MsgspecError):
            return None

    def drop(self, task: str) -> None:
        """Delete an environment."""
        (self._root / task).unlink(missing_ok=True)

    def kept(self) -> set[str]:
        """Return the tasks whose environments are stored."""
        return {path.name for path in self._root.iterdir()} if self._root.exists() else set()
