"""Which files a command changed, as far as git can tell: its status before and after. Else it is not known."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
from pathlib import Path

GIT_SECONDS = 5.0
MANY = 500
BEFORE = ".before-"
log = logging.getLogger(__name__)
State = dict[str, list[object]]


class Changes:
    """Remembers beside a task's output how its directory looked when it began."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def remember(self, task: str, cwd: Path) -> None:
        """Before the command starts. Where there is no git, or no space, nothing is kept: then it is not known."""
        state = await asyncio.to_thread(_look, cwd)
        if state is not None:
            try:
                self._file(task).write_text(json.dumps(state))
            except OSError as error:
                log.warning("what task %s changes will not be known: %s", task, error)
                self.forget(task)  # half of it is none

    def since(self, task: str, cwd: Path) -> list[str] | None:
        """What looks different now; None is not known. Others may have worked there too."""
        try:
            before: State = json.loads(self._file(task).read_text())
        except (OSError, ValueError):
            return None
        after = _look(cwd)
        if after is None:
            return None
        changed = {name for name in {*before, *after} if name and before.get(name) != after.get(name)}
        if before.get("") != after.get(""):
            changed |= _between(cwd, str(before[""][0]), str(after[""][0]))
        return [_shown(name) for name in sorted(changed)[:MANY]]

    def forget(self, task: str) -> None:
        """Its end is written."""
        self._file(task).unlink(missing_ok=True)

    def remembered(self) -> set[str]:
        """The tasks of which it knows; a gateway that was killed could not forget all of them."""
        return {path.name.removeprefix(BEFORE) for path in self._root.glob(f"{BEFORE}*")}

    def _file(self, task: str) -> Path:
        return self._root / f"{BEFORE}{task}"


def _look(cwd: Path) -> State | None:
    """Every file that differs from the last commit, with its size and time; under '' the commit itself."""
    top = _git(cwd, "rev-parse", "--show-toplevel")
    status = _git(cwd, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    if top is None or status is None:
        return None
    root = Path(top.strip())
    found: State = {"": [(_git(cwd, "rev-parse", "HEAD") or "").strip()]}
    for entry in filter(None, status.split("\0")):
        name = entry[3:]
        try:
            stat = (root / name).lstat()
            found[name] = [entry[:2], stat.st_size, stat.st_mtime_ns]
        except OSError:
            found[name] = [entry[:2]]
    return found


def _shown(name: str) -> str:
    """A name may be any bytes; what is written down is text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _between(cwd: Path, old: str, new: str) -> set[str]:
    if not old or not new:
        return set()
    names = _git(cwd, "diff", "--name-only", "-z", old, new)
    return set(filter(None, (names or "").split("\0")))


def _git(cwd: Path, *arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(cwd), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, timeout=GIT_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
