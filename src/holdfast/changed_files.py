"""The files that differ from a commit, or that are in a directory, and their lines.

Git compares (`git.py` says how it is kept from running anything of an agent's); a directory without git is read here
and by no program. Agents put there what they like: no link is followed, nothing but regular files is opened, and time,
depth, files and characters are bounded.

Blocks: call it in a thread.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from holdfast.git import GitFailed, Repository, as_text, find_repository, read_git

FileChangeKind = Literal["added", "changed", "deleted"]
FLAGS = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all")
HIDDEN = ".git"
"""Git's own files are nobody's work."""
STATES: dict[str, FileChangeKind] = {"A": "added", "D": "deleted"}
LISTED_BYTES = 4 << 20
DEPTH = 30
BINARY_SAMPLE = 8_000


@dataclass(frozen=True, slots=True)
class ChangeLimits:
    """How much is read and shown."""

    files: int = 1_000
    characters: int = 400_000
    file_bytes: int = 100_000
    seconds: float = 10.0


USUAL = ChangeLimits()


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs; its lines are not known if it is no text or too large."""

    path: str
    change: FileChangeKind
    added: int | None = None
    removed: int | None = None


@dataclass(slots=True)
class Changes:
    """All that differs, as far as the limits go."""

    compared_with: str
    files: list[ChangedFile] = field(default_factory=list)
    diff: str = ""
    left_out: str = ""
    """What the limits left out, in words; empty when nothing is missing."""


# --- with git -------------------------------------------------------------------------------------


def changes_in_repository(
    repository: Repository, *, origin: Path | None = None, limits: ChangeLimits = USUAL
) -> Changes:
    """Return how a working tree differs from its last commit, or from the commit where its branch left `origin`."""
    git = _Git(repository, limits)
    base = git.commit("HEAD")
    if base is None:
        return Changes("the repository has no commit yet")
    found = Changes(f"the last commit, {base[:10]}")
    if origin is not None and (original := find_repository(origin)) is not None:
        base = git("merge-base", "HEAD", git("rev-parse", "HEAD", of=original).strip()).strip()
        found = Changes(f"commit {base[:10]}, where its branch began")
    return git.compare(base, found, ())


def changes_since_commit(
    repository: Repository, commit: str, files: Sequence[str], *, limits: ChangeLimits = USUAL
) -> Changes:
    """Return how files differ from a commit; without one from the last."""
    git = _Git(repository, limits)
    base = git.commit(commit or "HEAD")
    if base is None:
        gone = f"commit {commit[:10]}, at which it began, no longer exists" if commit else "there is no commit yet"
        return Changes(gone)
    found = Changes(f"commit {base[:10]}, at which it began" if commit else f"the last commit, {base[:10]}")
    return git.compare(base, found, files)


class _Git:
    """Git in one repository, with one deadline for all that is asked."""

    def __init__(self, repository: Repository, limits: ChangeLimits) -> None:
        self._repository = repository
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds

    def __call__(self, *words: str, of: Repository | None = None, limit: int = LISTED_BYTES) -> str:
        left = max(0.1, self._deadline - time.monotonic())
        return read_git(of or self._repository, *words, seconds=left, limit=limit)

    def commit(self, name: str) -> str | None:
        """Return the commit that a name refers to; None if there is none."""
        try:
            return self("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").strip()
        except GitFailed:
            return None

    def compare(self, base: str, found: Changes, files: Sequence[str]) -> Changes:
        """Add to `found` what differs from a commit; only these files if any are named."""
        only = ("--", *(f":(top,literal){name}" for name in files)) if files else ()
        listed = _listed(self("diff", "--raw", "--numstat", "-z", *FLAGS, base, *only))
        patch = as_text(self("diff", *FLAGS, base, *only, limit=4 * self._limits.characters))
        others = self("ls-files", "--others", "--exclude-standard", "-z", *only)
        reader = _Reader(found, self._limits, self._deadline)
        for file in sorted(listed, key=lambda file: file.path):
            reader.add(file)
        reader.append(patch if not patch or patch.endswith("\n") else f"{patch}\n")
        for name in sorted(filter(None, others.split("\0"))):
            read = partial(_read_below, self._repository.top, Path(name), self._limits.file_bytes)
            reader.add_new(as_text(name), read)
        return reader.finished()


def _listed(said: str) -> list[ChangedFile]:
    """What `git diff --raw --numstat -z` lists: each file once with its state, and once with its lines."""
    states: dict[str, FileChangeKind] = {}
    files: list[ChangedFile] = []
    words = iter(said.split("\0"))
    for word in words:
        if word.startswith(":"):
            states[next(words, "")] = STATES.get(word[-1], "changed")
        elif word.count("\t") == 2:
            added, removed, name = word.split("\t")
            lines = [int(count) if count.isdigit() else None for count in (added, removed)]
            files.append(ChangedFile(as_text(name), states.get(name, "changed"), *lines))
    return files


# --- without --------------------------------------------------------------------------------------


def all_files(place: Path, compared_with: str, *, limits: ChangeLimits = USUAL) -> Changes:
    """Return all files of a directory that began empty."""
    reader = _Reader(Changes(compared_with), limits, deadline=time.monotonic() + limits.seconds)
    for path in _files(place, reader):
        reader.add_new(_shown(path), partial(_read_below, place, path, limits.file_bytes))
    return reader.finished()


def _files(place: Path, reader: _Reader) -> Iterator[Path]:
    """The files below a directory, in order, as long as the reader takes more. Links are named and not followed."""
    left = [Path()]
    while left and not reader.is_full():
        inside = left.pop()
        with suppress(OSError), os.scandir(place / inside) as entries:
            below: list[Path] = []
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    below += [inside / entry.name] if entry.name != HIDDEN and len(inside.parts) < DEPTH else []
                else:
                    yield inside / entry.name
            left += reversed(below)


def _shown(path: Path) -> str:
    return as_text(os.fsencode(path).decode("utf-8", "surrogateescape"))


def _read_below(top: Path, path: Path, limit: int) -> bytes | None:
    """Return a regular file below a directory; None if it is none, is too large, or lies behind a link."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = os.open(top, flags | os.O_DIRECTORY)
    try:
        for part in path.parts[:-1]:
            above, directory = directory, os.open(part, flags | os.O_DIRECTORY, dir_fd=directory)
            os.close(above)
        file = os.open(path.name, flags, dir_fd=directory)
    except OSError:
        return None
    finally:
        os.close(directory)
    with os.fdopen(file, "rb") as stream:
        about = os.fstat(file)
        data = stream.read(limit + 1) if stat.S_ISREG(about.st_mode) and about.st_size <= limit else None
    return data if data is not None and len(data) <= limit else None


class _Reader:
    """Collects files and their differences up to the limits."""

    def __init__(self, found: Changes, limits: ChangeLimits, deadline: float) -> None:
        self._found = found
        self._limits = limits
        self._deadline = deadline
        self._parts: list[str] = []
        self._room = limits.characters
        self._cut = ""

    def is_full(self) -> bool:
        """Whether there is no room or no time for more."""
        if len(self._found.files) >= self._limits.files:
            self._cut = f"There are more than {self._limits.files:,} files."
        elif time.monotonic() > self._deadline:
            self._cut = f"Not all files could be read within {self._limits.seconds:g} s."
        else:
            return False
        return True

    def add(self, file: ChangedFile) -> None:
        """Take a file if there is room."""
        if not self.is_full():
            self._found.files.append(file)

    def add_new(self, name: str, read: Callable[[], bytes | None]) -> None:
        """Take a file that was not there before, with its lines if it is a text."""
        if self.is_full():
            return
        data = read()
        text = None if data is None or b"\0" in data[:BINARY_SAMPLE] else data.decode("utf-8", "replace")
        lines = None if text is None else text.split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        self._found.files.append(ChangedFile(name, "added", *((None, None) if lines is None else (len(lines), 0))))
        self.append(_patch_of_new(name, lines))

    def append(self, patch: str) -> None:
        """Add to the text of the differences what there is room for, whole lines only."""
        if len(patch) > self._room:
            patch = patch[: self._room].rpartition("\n")[0]
            patch = f"{patch}\n" if patch else ""
            self._cut = self._cut or f"The differences are cut after {self._limits.characters:,} characters."
            self._room = 0
        else:
            self._room -= len(patch)
        self._parts.append(patch)

    def finished(self) -> Changes:
        """Return all of it."""
        self._found.diff = "".join(self._parts)
        self._found.left_out = self._cut
        return self._found


def _patch_of_new(name: str, lines: list[str] | None) -> str:
    head = f"diff --git a/{name} b/{name}\nnew file\n"
    if lines is None:
        return f"{head}It is no text, or too large to be shown.\n"
    if not lines:
        return head
    return f"{head}--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)
