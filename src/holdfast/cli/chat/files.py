"""Files to be named with `@`: found below the session's directory, within a bounded time and number."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

MOST = 40
SCANNED = 20_000
SECONDS = 0.15
SKIPPED = frozenset({".git", ".hg", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"})


def mention(before_cursor: str) -> str | None:
    """The path that is being typed behind an `@`, if one is."""
    at = max(before_cursor.rfind(" "), before_cursor.rfind("\n"), before_cursor.rfind("\t")) + 1
    word = before_cursor[at:]
    return word[1:] if word.startswith("@") else None


def matches(cwd: Path, typed: str, *, clock: Callable[[], float] = time.monotonic) -> list[str]:
    """Paths below `cwd` that begin like this; then those that have it in their name, anywhere below."""
    if typed.startswith(("/", "~")) or ".." in typed.split("/"):
        return []
    place, _, start = typed.rpartition("/")
    here = cwd / place if place else cwd
    found = [_path(place, entry) for entry in _listed(here) if _fits(entry.name, start)]
    found.sort(key=lambda path: (not path.endswith("/"), path))
    if len(found) < MOST and start and not place:
        known = set(found)
        found += [path for path in _below(cwd, start.lower(), clock() + SECONDS, clock) if path not in known]
    return found[:MOST]


def _fits(name: str, start: str) -> bool:
    return name.startswith(start) and (start.startswith(".") or not name.startswith("."))


def _listed(place: Path) -> list[os.DirEntry[str]]:
    """The entries of a directory that can be written on a line; none if it cannot be read."""
    try:
        with os.scandir(place) as entries:
            return [entry for _, entry in zip(range(SCANNED), entries, strict=False) if entry.name.isprintable()]
    except OSError:
        return []


def _below(cwd: Path, part: str, deadline: float, clock: Callable[[], float]) -> Iterator[str]:
    """Level by level, so that what is near comes first."""
    places = deque([""])
    scanned = found = 0
    while places and found < MOST and scanned < SCANNED and clock() < deadline:
        place = places.popleft()
        for entry in sorted(_listed(cwd / place), key=lambda entry: entry.name):
            scanned += 1
            if entry.name in SKIPPED or entry.name.startswith("."):
                continue
            path = _path(place, entry)
            if path.endswith("/"):
                places.append(path.rstrip("/"))
            if part in entry.name.lower():
                found += 1
                yield path


def _path(place: str, entry: os.DirEntry[str]) -> str:
    """Relative to the session's directory; a directory ends with a slash. Links are not followed."""
    path = f"{place}/{entry.name}" if place else entry.name
    try:
        return f"{path}/" if entry.is_dir(follow_symlinks=False) else path
    except OSError:
        return path
