"""The files in which agents keep their sessions: found by their names, read line by line, never written.

No symbolic link below the agent's own directory is followed, and nothing but a regular file is read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.config import environment
from holdfast.external_agent_files import SESSIONS
from holdfast.runtime.external.process import LINE_LIMIT

NAME = re.compile(r"(?:rollout-[0-9T-]{19}-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl")
DEPTH = 3
"""How many directories there are between that of all sessions and a file: Codex has one for the year, month and day."""
PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The file of a session."""

    id: str
    """The agent's own id of the session."""
    path: Path
    changed_at: int
    size: int


def agent_home(agent: str) -> Path:
    """Return the directory of an agent's own files."""
    known = SESSIONS[agent]
    given = environment(known.variable)
    return Path(given).expanduser() if given is not None else Path.home() / known.home


def session_directory(agent: str) -> Path:
    """Return the directory below which an agent keeps its sessions."""
    return agent_home(agent) / SESSIONS[agent].directory


def find_files(agent: str) -> list[SessionFile]:
    """Return the files of all sessions of an agent, the one that was changed last first."""
    found = [*_files_in(str(session_directory(agent)), DEPTH)]
    return sorted(found, key=lambda file: (file.changed_at, file.id), reverse=True)


def _files_in(directory: str, depth: int) -> Iterator[SessionFile]:
    try:
        entries = [*os.scandir(directory)]
    except OSError:  # it is not there, or may not be read
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _files_in(entry.path, depth - 1)
        elif (name := NAME.fullmatch(entry.name)) is not None and entry.is_file(follow_symlinks=False):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # it has just been removed
                continue
            yield SessionFile(name[1], Path(entry.path), status.st_mtime_ns // 1_000_000, status.st_size)


def read_lines(path: Path, *, limit: int | None = None) -> Iterator[bytes | None]:
    """Yield each line, the last one even if its newline is missing; None for one that is too long. With `limit`, only
    whole lines of about so many bytes at the beginning.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        rest, size, total = bytearray(), 0, 0
        while piece := file.read(PIECE if limit is None else min(PIECE, limit)):
            for index, part in enumerate(piece.split(b"\n")):
                if index:
                    yield bytes(rest) if size <= LINE_LIMIT else None
                    rest.clear()
                    size = 0
                size += len(part)
                if size <= LINE_LIMIT:
                    rest += part
            total += len(piece)
            if limit is not None and total >= limit:
                return
        if size:
            yield bytes(rest) if size <= LINE_LIMIT else None
