"""What is to be run (`CommandSpec`), and the states and outcomes of a command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from holdfast.domain.errors import Rejected
from holdfast.processes.keeper import BLOCK

HEAD_BYTES = 1 << 20
TAIL_BYTES = 4 << 20
SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
TASK_VARIABLE = "HOLDFAST_TASK"
"""A variable in the environment of every command: the id of the task, a dot, and a nonce."""
ID = re.compile(r"[0-9a-f]{8,64}\Z")

Witness = Literal["keeper", "standby", "zombie", "pidfd"]
"""The source from which its end is known: the record of a keeper, or the kernel."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What is to be run, and how. `env` is the whole environment of the command."""

    id: str
    run: str | tuple[str, ...]
    """A text for the shell (bash where there is one, else `/bin/sh`), or the words of an argv."""
    cwd: Path
    env: Mapping[str, str] = field(repr=False)
    umask: int = 0o022
    head: int = HEAD_BYTES
    tail: int | None = TAIL_BYTES
    """How many bytes at the end of a long output are kept; with `None` nothing is dropped automatically."""
    stdin: Literal["nothing", "pipe", "file"] = "nothing"
    """`file` keeps what was written, so that a writer knows after a crash what the command got or will get."""
    stdout: Literal["file", "pipe"] = "file"
    """`pipe` is for programs that refuse a file; what they write ends in the same file."""
    stderr: Literal["output", "apart"] = "output"
    sandbox: tuple[str, ...] = ()
    """The program that builds a sandbox, with its arguments, before the command itself. Empty is none."""

    @property
    def argv(self) -> list[str]:
        """The program and its arguments."""
        if isinstance(self.run, str):
            shell = next((path for path in SHELLS if Path(path).exists()), SHELLS[-1])
            return [shell, "-c", "--", self.run]
        return list(self.run)

    def check(self) -> None:
        """Refuse a command that could not be started, or only as something else."""
        check_id(self.id)
        words = [*self.argv, str(self.cwd), *self.env.keys(), *self.env.values()]
        if not self.run:
            raise Rejected("There is no command in it.")
        if any("\0" in word for word in words):
            raise Rejected("A command, its directory and its environment cannot hold a NUL character.")
        if any(not name or "=" in name for name in self.env):
            raise Rejected("The name of an environment variable is empty or holds a '='.")
        if not self.cwd.is_absolute():
            raise Rejected(f"The working directory {self.cwd} is not an absolute path.")
        if self.head < 0 or self.head % BLOCK or (self.tail is not None and self.tail < BLOCK):
            raise Rejected(f"The head is a multiple of {BLOCK} bytes, the tail at least as much.")


@dataclass(frozen=True, slots=True)
class Running:
    """The command is alive."""

    id: str
    pid: int
    started_at: float
    """By the wall clock, which may be set; callers must cope with that."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The command has ended, and it is known how."""

    id: str
    status: int
    """The exit code; below 0 the signal that ended it."""
    by: Witness
    finished_at: float | None
    """`None` when no keeper recorded it."""

    @property
    def code(self) -> int | None:
        """The exit code, if it ended by itself."""
        return self.status if self.status >= 0 else None

    @property
    def signal(self) -> int | None:
        """The signal, if one ended it."""
        return -self.status if self.status < 0 else None


@dataclass(frozen=True, slots=True)
class NeverStarted:
    """The command has not run, and will not unless it is started again."""

    id: str
    reason: str
    errno: int = 0
    cancelled: bool = False
    """Whether nobody tried to run it, and nobody will: nothing speaks against another start."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The command has ended, and it is not known how. The evidence says why."""

    id: str
    evidence: str


CommandOutcome = Ended | NeverStarted | Lost
CommandState = Running | CommandOutcome


def check_id(id: str) -> str:
    """Refuse an id that is not hexadecimal: it becomes a path."""
    if not ID.match(id):
        raise Rejected(f"{id!r} is not the ID of a task.")
    return id
