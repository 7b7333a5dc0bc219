"""How the files that a task changed differ from the commit at which it began.

They are compared as they are now: what somebody changed in the same files before or after the task is in it, too.

Blocks: call it in a thread.
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.changed_files import Changes, changes_since_commit
from holdfast.domain.errors import Conflict
from holdfast.git import GitFailed, find_repository
from holdfast.store.rows import TaskRow

UNKNOWN = "which files it changed is not known"


def task_changes(row: TaskRow, *, base_commit: str) -> Changes:
    """Return the differences of the files that an ended task changed. `Conflict` if git cannot compare them."""
    if row.files is None:
        return Changes(UNKNOWN)
    if not row.files:
        return Changes("it changed no file")
    cwd = Path(row.cwd)
    try:
        repository = find_repository(cwd)
        if repository is None:
            return Changes("its directory is not a git repository")
        files = [name for file in row.files for name in _from_top(repository.top, cwd, file)]
        return changes_since_commit(repository, base_commit, files) if files else Changes(UNKNOWN)
    except (GitFailed, OSError) as error:
        raise Conflict(f"The changes cannot be compared: {error}.") from error


def _from_top(top: Path, cwd: Path, file: str) -> list[str]:
    """Return the paths from the top of the repository that a name may mean: git begins there, tools where they work."""
    below = [Path(os.path.normpath(base / file)) for base in (top, cwd.resolve())]
    return sorted({str(path.relative_to(top)) for path in below if path.is_relative_to(top)})
