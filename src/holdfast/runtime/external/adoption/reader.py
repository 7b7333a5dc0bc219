"""From the file of a session to its history, and to a line in a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.domain.session_rules import title_from
from holdfast.runtime.external.adoption.claude import ClaudeReader
from holdfast.runtime.external.adoption.codex import CodexReader, forked_from, is_subagent
from holdfast.runtime.external.adoption.files import SessionFile, read_lines
from holdfast.runtime.external.adoption.history import ImportedHistory
from holdfast.runtime.external.command.items import json_object

READERS: dict[str, type[ClaudeReader] | type[CodexReader]] = {"claude": ClaudeReader, "codex": CodexReader}
HEAD_BYTES = 512 << 10
"""How much of a file is read for a list."""
FORKS = 20
"""How many files a forked session may consist of."""


def read_history(agent: str, file: SessionFile, others: list[SessionFile]) -> ImportedHistory:
    """Read a session. `others` are the agent's files, among which may be those that it was forked from. `OSError` if
    its file cannot be read.
    """
    history = ImportedHistory()
    reader = READERS[agent](history)
    for line in _lines(file, others, history):
        reader.read(line)
    return history


def describe(agent: str, file: SessionFile) -> ImportedHistory | None:
    """Read the beginning of a session: its directory and its first message; None if it is no session of a person."""
    history = ImportedHistory()
    reader = READERS[agent](history)
    try:
        for index, line in enumerate(read_lines(file.path, limit=HEAD_BYTES)):
            found = json_object(line or b"")
            if index == 0 and is_subagent(found):
                return None
            reader.read(found)
            if history.turns and history.cwd:
                break
    except OSError:
        return None
    return history


def title_of(history: ImportedHistory) -> str:
    """Return a title: its own, or from the first message."""
    return title_from(history.title or (history.turns[0].text if history.turns else ""))


def _lines(file: SessionFile, others: list[SessionFile], history: ImportedHistory) -> Iterator[dict[str, Any]]:
    """Yield the lines of a session, with those of the session that it continues before its own."""
    parts: list[tuple[SessionFile, int | None]] = [(file, None)]
    while len(parts) < FORKS and (source := _source(parts[-1][0])) is not None:
        before = next((one for one in others if one.id == source[0]), None)
        if before is None or before in (one for one, _ in parts):
            history.unreadable += 1  # what was said before the fork is gone
            break
        parts.append((before, source[1]))
    for part, end in reversed(parts):
        for line in read_lines(part.path):
            found = json_object(line or b"")
            if end is not None and isinstance(at := found.get("ordinal"), int) and at >= end:
                break
            if found:
                yield found
            elif line is None or line.strip():
                history.unreadable += 1


def _source(file: SessionFile) -> tuple[str, int] | None:
    first = next(read_lines(file.path, limit=HEAD_BYTES), None)
    return forked_from(json_object(first or b""))
