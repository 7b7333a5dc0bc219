"""The files that a task changed, by `git status` before and after it; unknown outside of a git repository."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from holdfast.git import GitFailed, Repository, as_text, find_repository, read_git, status
from holdfast.network_mounts import NetworkMounts

GIT_SECONDS = 5.0
LOOK_SECONDS = 30.0
"""For all git commands of one look."""
MANY = 500
BEFORE = ".before-"
log = logging.getLogger(__name__)
State = dict[str, list[object]]
T = TypeVar("T")


class SeenChanges(NamedTuple):
    """The files that changed while a task ran, and the commit that was checked out when it began."""

    files: list[str]
    base_commit: str


class GitSnapshots:
    """Stores the git status at the beginning of each task, beside its output."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mounts = NetworkMounts()

    async def take(self, task: str, cwd: Path) -> None:
        """Store the status before a task starts, if there is a git repository and enough space."""
        state = await self._look(lambda: _read_status(cwd), cwd)
        if state is not None:
            try:
                self._file(task).write_text(json.dumps(state))
            except OSError as error:
                log.warning("the files that task %s changes will not be known: %s", task, error)
                self.forget(task)  # an incomplete snapshot is useless

    async def changes_since(self, task: str, cwd: Path) -> SeenChanges | None:
        """Return the files that changed since `take`, by whatever program; None if that is not known."""
        return await self._look(lambda: self._compare(task, cwd), cwd)

    async def _look(self, work: Callable[[], T | None], cwd: Path) -> T | None:
        """Do work in a directory that may be on a network file system whose server does not answer."""
        try:
            return await self.mounts.run_within(LOOK_SECONDS, work)
        except TimeoutError:
            log.warning("%s did not answer within %.0f s: its changed files are not known", cwd, LOOK_SECONDS)
            return None

    def _compare(self, task: str, cwd: Path) -> SeenChanges | None:
        try:
            before: State = json.loads(self._file(task).read_text())
        except (OSError, ValueError):
            return None
        after = _read_status(cwd)
        if after is None:
            return None
        changed = {name for name in {*before, *after} if name and before.get(name) != after.get(name)}
        commit = str(before[""][0])
        if before.get("") != after.get(""):
            changed |= _changed_between(cwd, commit, str(after[""][0]))
        return SeenChanges([as_text(name) for name in sorted(changed)[:MANY]], commit)

    def forget(self, task: str) -> None:
        """Delete the snapshot of a task that ended."""
        self._file(task).unlink(missing_ok=True)

    def remembered(self) -> set[str]:
        """Return the tasks that have a snapshot; a killed gateway leaves some behind."""
        return {path.name.removeprefix(BEFORE) for path in self.root.glob(f"{BEFORE}*")}

    def _file(self, task: str) -> Path:
        return self.root / f"{BEFORE}{task}"


def _read_status(cwd: Path) -> State | None:
    """Return the files that differ from the last commit, with size and time; the commit itself is under ''."""
    try:
        repository = find_repository(cwd)
        if repository is None:
            return None
        text = status(repository, "-z", "--untracked-files=all", cwd=cwd, seconds=GIT_SECONDS)
        found: State = {"": [_commit(repository)]}
    except (GitFailed, OSError) as error:
        log.info("the git status of %s cannot be read: %s", cwd, error)
        return None
    for entry in filter(None, text.split("\0")):
        name = entry[3:]
        try:
            stat = (repository.top / name).lstat()
            found[name] = [entry[:2], stat.st_size, stat.st_mtime_ns]
        except OSError:
            found[name] = [entry[:2]]
    return found


def _commit(repository: Repository) -> str:
    try:
        return read_git(repository, "rev-parse", "HEAD", seconds=GIT_SECONDS).strip()
    except GitFailed:
        return ""  # there is none yet


def _changed_between(cwd: Path, old: str, new: str) -> set[str]:
    if not old or not new:
        return set()
    try:
        repository = find_repository(cwd)
        flags = ("--name-only", "-z", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
        names = read_git(repository, "diff", *flags, old, new, seconds=GIT_SECONDS) if repository is not None else ""
    except (GitFailed, OSError):
        return set()
    return set(filter(None, names.split("\0")))
