"""The directories in which a tool may work: the working directory and what else the profile opens.

A path is resolved once (`resolve`); what is then opened is reached from there step by step without following
any link (`directory`), so a link that is put there between the look and the use leads nowhere.
A hard link is the file itself and can be read; writing replaces the name, never the other end.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from holdfast.domain.errors import HoldfastError
from holdfast.network_mounts import NetworkMounts
from holdfast.secrets import NO_SECRETS
from holdfast.tasks.sandbox import SandboxPolicy

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY_MODE = 0o755
"""Directories of the user get the usual mode, not that of the gateway's umask 077."""
SYSTEM = (Path("/proc"),)
"""Never open to tools: it shows the environment of the gateway."""
GIT_PARTS = ("HEAD", "objects", "refs", "commondir")
KEPT = (1 << 20, 4 << 20)


class ToolFailed(Exception):
    """A tool did not do what was asked, for this reason."""

    @classmethod
    def by(cls, error: HoldfastError) -> ToolFailed:
        """Return what the model reads of an error: its message and its hint."""
        return cls(f"{error.message} {error.hint}".strip())


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The open and the closed directories for a tool call, and what limits the call."""

    cwd: Path
    also: tuple[Path, ...] = ()
    closed: tuple[Path, ...] = SYSTEM
    """Directories that stay closed even where they lie in open ones; real paths, without links."""
    workspace: Path | None = None
    """The workspace of a card, which is open although it is inside a closed directory."""
    bounds: tuple[tuple[Path, ...], ...] = ()
    """What the agents that created this one could reach: a path must lie in each of these, or in `workspace`."""
    other_sessions: bool = False
    """Whether tasks of other sessions may be looked at and ended."""
    may_run_commands: bool = True
    """Whether commands can be run at all, by a rule or with an approval."""
    refusal: str = ""
    """Why no call may be carried out, as a sentence; empty if rules decide."""
    approved_path: str = ""
    """The path that was approved, as in the log; any other is refused. Empty allows any."""
    approved_digest: str = ""
    """The digest of the file whose change was approved; if the file is different now, the change is refused."""
    profile: str = ""
    session: str = ""
    call: str = ""
    run: int = 0
    """The run whose token the caller showed; such a call comes over MCP and has no id."""
    kept_output: tuple[int, int] = KEPT
    """How many bytes of the beginning and of the end of a command's output are kept."""
    git_rules: tuple[tuple[str, ...], ...] = ()
    """The rules about `.git`, of its profile and of each that limits it. File tools write there only if each of these
    has a rule that matches.
    """
    sandbox: SandboxPolicy = field(default_factory=SandboxPolicy)
    """The sandbox policy of its commands."""
    mounts: NetworkMounts = field(default_factory=NetworkMounts)
    """Runs what its file tools do."""
    mask: Callable[[str], str] = NO_SECRETS.mask
    """Removes the values of keys from a text."""
    call_key: str = ""
    """The name of the call, unique in the home, by which its temporary files are found after a crash."""

    def resolve(self, path: str) -> Path:
        """Return the path with all links followed, if it is in an open directory."""
        root = real_path(self.cwd)
        if not os.path.isdir(root):  # noqa: PTH112 - this runs before every call of a tool, and a Path takes twice as long
            raise ToolFailed(f"The working directory {self.cwd} does not exist.")
        try:
            target = real_path(root / Path(path).expanduser())
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolFailed(f"{path!r} is not a usable path: {error}.") from error
        self._root(target, path, root)
        own = self.workspace is not None and _is_in(target, real_path(self.workspace))
        if not own and not all(any(_is_in(target, str(reached)) for reached in bound) for bound in self.bounds):
            raise ToolFailed(f"{path} is closed to you: the agent that created this work could not reach it either.")
        if any(_is_in(target, str(closed)) for closed in self.closed) and not own:
            raise ToolFailed(f"{path} is closed to tools: it holds what belongs to Holdfast or the system.")
        if self.approved_path and _display(target, root) != self.approved_path:
            raise ToolFailed(f"{path} leads to {_display(target, root)} now; {self.approved_path} was allowed.")
        return Path(target)

    def check_writable(self, target: Path, tool: str) -> None:
        """Refuse to change git's own files, since they can name programs that git runs."""
        name = self.display(target)
        if self.git_rules and all(_names(rules, tool, name) for rules in self.git_rules):
            return
        if any(part.casefold() == ".git" for part in target.parts) or _in_git_directory(target):
            raise ToolFailed(
                f"{name} belongs to git, which runs programs that are named there; {tool} leaves it alone. Use git "
                f'itself, or have the profile name it: "{tool}:.git/**" = "ask" in its tools.'
            )

    def display(self, target: Path) -> str:
        """Return an open path as the log shows it: relative to the working directory if it is inside."""
        return _display(str(target), real_path(self.cwd))

    @property
    def reachable(self) -> list[Path]:
        """Return the open directories with all links followed."""
        return [path.resolve() for path in (self.cwd, *self.also)]

    def closed_below(self, directory: Path) -> list[str]:
        """Return the closed directories inside an open one, relative to it."""
        below = (path for path in self.closed if path.is_relative_to(directory))
        return [path.relative_to(directory).as_posix() for path in below]

    @contextmanager
    def directory(self, target: Path, *, make: bool = False) -> Iterator[int]:
        """Open a directory that is inside; with `make`, create it if it is missing."""
        root = self._root(str(target), str(target), real_path(self.cwd))
        here = os.open(root, DIRECTORY & ~os.O_NOFOLLOW)
        try:
            for name in target.relative_to(root).parts:
                above, here = here, _enter(here, name, make=make)
                os.close(above)
            yield here
        finally:
            os.close(here)

    def _root(self, target: str, name: str, cwd: str) -> str:
        """Return the open directory that contains it; `cwd` is the working directory with links followed."""
        if _is_in(target, cwd):
            return cwd
        for also in self.also:
            if _is_in(target, root := real_path(also)):
                return root
        raise ToolFailed(f"{name} is outside of the working directory {cwd}.")


DELETED = " (deleted)"
"""What the kernel adds to the name of a file that was removed or replaced after it was opened."""


def real_path(path: Path) -> str:
    """The path after all links are followed; a part that does not exist stays as it is.

    The kernel follows them in one call; `Path.resolve` looks at each part in Python and takes three times as long.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):
        return _resolve(path)
    try:
        found = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - see above
    finally:
        os.close(descriptor)
    return _resolve(path) if not found.startswith("/") or found.endswith(DELETED) else found


def _resolve(path: Path) -> str:
    """Follow all links; `OSError` for a path through a loop of links, after which Python follows no more of them."""
    found = str(path.resolve())
    if os.path.realpath(found) != found:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return found


def _is_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory if directory.endswith("/") else f"{directory}/")


def _display(target: str, root: str) -> str:
    inside = target[len(root) :].lstrip("/") or "." if _is_in(target, root) else target
    return printable(inside)


def _in_git_directory(target: Path) -> bool:
    """Return whether a path is in a git directory of another name, such as a bare repository, or would make one."""
    for above, below in zip(target.parents, (target, *target.parents), strict=False):
        there = {name for name in GIT_PARTS if name == below.name or (above / name).exists()}
        if {"HEAD", "objects", "refs"} <= there or {"HEAD", "commondir"} <= there:
            return True
    return False


def _enter(above: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, DIRECTORY, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(name, DIRECTORY_MODE, dir_fd=above)
    except FileExistsError:
        return os.open(name, DIRECTORY, dir_fd=above)  # another process created it meanwhile
    made = os.open(name, DIRECTORY, dir_fd=above)
    os.fchmod(made, DIRECTORY_MODE)
    return made


def _names(rules: tuple[str, ...], tool: str, path: str) -> bool:
    pairs = (rule.partition(":")[::2] for rule in rules)
    return any(fnmatchcase(tool, whose) and fnmatchcase(path, pattern) for whose, pattern in pairs)


def printable(name: str) -> str:
    """Return a file's name on one line, with unprintable characters escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)
