"""Git, as Holdfast itself runs it: in directories that agents can write, without running anything of theirs.

Write access to `.git` is enough to make git start programs: hooks, filters, textconv, fsmonitor, ssh commands,
includes and more, under names of their choice. So a repository's configuration is not read at all. `read_git` gives
git a private directory with a configuration of our own and the repository's refs, objects and index; a driver that
`.gitattributes` names does not exist there. `manage_worktrees` needs the real directory; it runs no command that would
use a driver, and turns hooks and the like off by name. Both get an environment of their own without any key.

Blocks until git has ended: call it in a thread.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.config import environment

SECONDS = 60.0
OUTPUT_BYTES = 8 << 20
SMALL_BYTES = 4_096
CONFIG_BYTES = EXCLUDE_BYTES = 1 << 20
QUOTED = 400
REFERENCE = re.compile(r"(ref: refs/[^\x00-\x20]+|[0-9a-f]{40}|[0-9a-f]{64})\n?\Z")
KEPT_SETTINGS = {
    "core.filemode": ("true", "false"),
    "core.symlinks": ("true", "false"),
    "core.ignorecase": ("true", "false"),
    "core.autocrlf": ("true", "false", "input"),
    "core.eol": ("lf", "crlf", "native"),
    "extensions.objectformat": ("sha1", "sha256"),
}
"""What is taken over from a repository's own configuration, and the values that it can have."""
KNOWN_EXTENSIONS = {"objectformat", "worktreeconfig", "noop", "partialclone", "preciousobjects"}
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_COMMITTER_NAME": "Holdfast",
    "GIT_COMMITTER_EMAIL": "holdfast@localhost",
}
TURNED_OFF = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.alternateRefsCommand": "false",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "core.editor": "false",
    "core.quotePath": "false",
    "core.pager": "cat",
    "credential.helper": "",
    "diff.external": "",
    "diff.ignoreSubmodules": "all",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
    "gpg.program": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
}


class GitFailed(Exception):
    """Git did not do it, or was not asked to; says why."""


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a working tree and what git knows of it are."""

    top: Path
    directory: Path
    """Its own git directory: HEAD and index."""
    common: Path
    """The one that all worktrees share: objects, refs and configuration."""


def find_repository(path: Path) -> Repository | None:
    """The repository that a directory lies in, by its `.git`; a bare one is none."""
    here = path.resolve()
    for top in (here, *here.parents):
        entry = top / ".git"
        if entry.is_dir():
            return _repository(top, entry.resolve())
        if entry.is_file():
            named = _small(entry).removeprefix("gitdir: ").strip()
            return _repository(top, (top / named).resolve())
    return None


def _repository(top: Path, directory: Path) -> Repository:
    shared = directory / "commondir"
    common = (directory / _small(shared).strip()).resolve() if shared.exists() else directory
    if not (directory / "HEAD").is_file() or not (common / "objects").is_dir() or not (common / "refs").is_dir():
        raise GitFailed(f"{top / '.git'} is not a git repository")
    return Repository(top, directory, common)


def read_git(
    repository: Repository, *words: str, cwd: Path | None = None, seconds: float = SECONDS, limit: int = OUTPUT_BYTES
) -> str:
    """What git says about a working tree; more than the limit is cut off. The repository's configuration is not read.

    `read-tree -u` is the one command here that writes, into a new worktree.
    """
    with _private_directory(repository) as private:
        own = {
            "GIT_DIR": str(private),
            "GIT_WORK_TREE": str(repository.top),
            "GIT_OBJECT_DIRECTORY": str(repository.common / "objects"),
            "GIT_INDEX_FILE": str(repository.directory / "index"),
            "HOME": str(private),
        }
        found = _run(words, cwd=cwd or repository.top, own=own, seconds=seconds, limit=limit)
    return found.decode("utf-8", "surrogateescape")


def manage_worktrees(repository: Repository, *words: str) -> None:
    """`git worktree` in the real directory. Never let it check out or compare files: filters would run."""
    if words[0] == "add":
        words = ("add", "--no-checkout", *words[1:])
    elif words[0] == "remove":
        words = ("remove", "--force", "--force", *words[1:])
    own = {"GIT_DIR": str(repository.common), "GIT_WORK_TREE": str(repository.top), "HOME": os.devnull}
    _run(("worktree", *words), cwd=repository.top, own=own, seconds=SECONDS, limit=OUTPUT_BYTES)


def status(repository: Repository, *words: str, cwd: Path | None = None, seconds: float = SECONDS) -> str:
    """`git status` for programs; a submodule is a repository of its own and not looked into."""
    flags = ("--porcelain=v1", "--ignore-submodules=all", "--no-renames")
    return read_git(repository, "status", *flags, *words, cwd=cwd, seconds=seconds)


def as_text(text: str) -> str:
    """What git said, as text that can be written down: names may be any bytes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextmanager
def _private_directory(repository: Repository) -> Iterator[Path]:
    """A git directory with our configuration and the repository's refs and excludes."""
    with tempfile.TemporaryDirectory(prefix="holdfast-git-") as name:
        private = Path(name)
        (private / "config").write_text(_configuration(repository, private))
        (private / "HEAD").write_text(_head(repository))
        (private / "info").mkdir()
        with suppress(GitFailed, FileNotFoundError):
            excluded = _small(repository.common / "info" / "exclude", EXCLUDE_BYTES)
            (private / "info" / "exclude").write_text(excluded, errors="surrogateescape")
        (private / "refs").symlink_to(repository.common / "refs")
        for shared in ("packed-refs", "shallow"):
            if (repository.common / shared).exists():
                (private / shared).symlink_to(repository.common / shared)
        for part in repository.directory.glob("sharedindex.*"):
            (private / part.name).symlink_to(part)
        yield private


def _configuration(repository: Repository, private: Path) -> str:
    """Ours, with what must be known of theirs to read the files: a few words that run nothing."""
    theirs, copy, said = repository.common / "config", private / "theirs", b""
    if theirs.exists():
        copy.write_text(_small(theirs, CONFIG_BYTES), errors="surrogateescape")
        words = ("config", "--file", str(copy), "--no-includes", "--list", "-z")
        said = _run(words, cwd=private, own={"HOME": os.devnull}, seconds=SECONDS, limit=OUTPUT_BYTES)
    settings = dict(entry.partition("\n")[::2] for entry in said.decode("utf-8", "replace").split("\0") if entry)
    unknown = {name.removeprefix("extensions.") for name in settings if name.startswith("extensions.")}
    if unknown - KNOWN_EXTENSIONS:
        raise GitFailed(f"it uses extensions that Holdfast does not know: {', '.join(sorted(unknown))}")
    kept = {name: settings[name] for name, values in KEPT_SETTINGS.items() if settings.get(name) in values}
    version = 1 if "extensions.objectformat" in kept else 0
    lines = ["[core]", f"repositoryformatversion = {version}", "bare = false"]
    for name, value in sorted(kept.items()):
        section, _, key = name.partition(".")
        lines += [f"[{section}]", f"{key} = {value}"]
    return "\n".join(lines) + "\n"


def _head(repository: Repository) -> str:
    head = repository.directory / "HEAD"
    text = f"ref: {head.readlink()}" if head.is_symlink() else _small(head)
    if not REFERENCE.match(text):
        raise GitFailed(f"{head} names neither a commit nor a branch")
    return text.rstrip("\n") + "\n"


def _small(path: Path, limit: int = SMALL_BYTES) -> str:
    """The text of a small regular file; a pipe or a device in its place is refused."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise GitFailed(f"{path}: {error.strerror}") from error
    with os.fdopen(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise GitFailed(f"{path} is not a regular file")
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise GitFailed(f"{path} is larger than {limit} bytes")
    return data.decode("utf-8", "surrogateescape")


def _run(words: tuple[str, ...], *, cwd: Path, own: Mapping[str, str], seconds: float, limit: int) -> bytes:
    search = [part for part in (environment("PATH") or os.defpath).split(os.pathsep) if part.startswith("/")]
    path = os.pathsep.join(search)
    program = shutil.which("git", path=path)
    if program is None:
        raise GitFailed("git is not installed")
    env = {"PATH": path, **ENVIRONMENT, **own, "GIT_CONFIG_COUNT": str(len(TURNED_OFF))}
    for number, (name, value) in enumerate(TURNED_OFF.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 (our own words, and no shell)
                [program, "--no-pager", *words],
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise GitFailed(f"git cannot be run: {error.strerror}") from error
        said, cut = _read(process, words[0], seconds=seconds, limit=limit)
        errors.seek(0)
        complaint = errors.read(OUTPUT_BYTES)
    if process.returncode and not cut:
        reason = " ".join(complaint.decode("utf-8", "replace").split())[-QUOTED:]
        raise GitFailed(f"git {words[0]} failed: {reason or f'exit code {process.returncode}'}")
    return said


def _read(process: subprocess.Popen[bytes], word: str, *, seconds: float, limit: int) -> tuple[bytes, bool]:
    """Its output, and whether there was more of it than the limit. Nothing of it is left running."""
    assert process.stdout is not None
    deadline, said, cut = time.monotonic() + seconds, bytearray(), False
    with process, selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        try:
            while not cut:
                if not ready.select(max(0.0, deadline - time.monotonic())):
                    raise GitFailed(f"git {word} did not answer within {seconds:g} s")
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    process.wait(max(0.1, deadline - time.monotonic()))
                    break
                said += piece
                cut = len(said) > limit
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git {word} did not answer within {seconds:g} s") from error
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    return bytes(said[:limit]), cut
