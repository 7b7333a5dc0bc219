"""What a call would change in a file: the difference to the file as it is now, and a digest of that file."""

from __future__ import annotations

import os
import stat
from difflib import unified_diff
from hashlib import blake2s
from pathlib import Path

from holdfast.runtime.tools.context import ToolContext, ToolFailed

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
ABSENT = "absent"
COMPARED_BYTES = 1_000_000
COMPARED_LINES = 4_000
"""Larger files are not compared line by line: that takes too long, and nobody would read it."""


def current(context: ToolContext, path: Path) -> tuple[str, bytes | None]:
    """The digest of a file, and its content; None when it does not exist or is too large."""
    try:
        with context.directory(path.parent) as parent:
            file = os.open(path.name, READ, dir_fd=parent)
    except FileNotFoundError:
        return ABSENT, None
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise ToolFailed(f"{path.name} is not a regular file.")
        if found.st_size > COMPARED_BYTES:
            return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}", None
        data = opened.read()
    return blake2s(data, digest_size=16).hexdigest(), data


def check_unchanged(context: ToolContext, path: Path, name: str) -> None:
    """Refuse to change a file that is not the one that a person saw the change of."""
    if context.approved_digest and current(context, path)[0] != context.approved_digest:
        raise ToolFailed(f"{name} was changed after the approval; nothing was done. Call again to ask again.")


def difference(name: str, before: str, after: str, *, is_new: bool) -> str:
    """The change, line by line, as `diff -u` shows it."""
    if before.count("\n") + after.count("\n") > COMPARED_LINES:
        return f"{name}: {len(before)} characters are replaced by {len(after)}; too many lines to compare."
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = unified_diff(old, new, "(new file)" if is_new else name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
