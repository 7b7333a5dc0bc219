"""Long answers in parts that a chat takes, without breaking code: a block that is cut is closed and opened again."""

from __future__ import annotations

import re

PART = 3_900
"""Characters of a part, counted as Telegram counts (UTF-16 units; it takes 4096), with room for what closes a block."""
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)")


def split_markdown(text: str, limit: int = PART) -> list[str]:
    """Return the parts of a text: cut between paragraphs where that is possible, else between lines, else in a line."""
    parts: list[str] = []
    lines: list[str] = []
    used, fence, language = 0, "", ""
    for line in _short_lines(text.strip("\n"), limit):
        size = units(line) + 1
        if lines and used + size > limit:
            kept = 0 if fence else _last_gap(lines)
            parts.append("\n".join([*lines[: kept or None], *([fence] if fence else [])]))
            lines = [f"{fence}{language}"] if fence else lines[kept:] if kept else []
            used = sum(units(one) + 1 for one in lines)
        lines.append(line)
        used += size
        if found := FENCE.match(line):
            if not fence:
                fence, language = found[1], found[2]
            elif found[1].startswith(fence) and not found[2]:
                fence, language = "", ""
    parts.append("\n".join([*lines, *([fence] if fence else [])]))
    return [part.strip("\n") for part in parts if part.strip()]


def units(text: str) -> int:
    """Return the length of a text in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def _last_gap(lines: list[str]) -> int:
    """Return where the last paragraph begins; 0 if that is in the first half, so that no part is needlessly short."""
    gaps = [number + 1 for number, line in enumerate(lines) if not line.strip() and number > len(lines) // 2]
    return gaps[-1] if gaps and not _in_code(lines[: gaps[-1]]) else 0


def _in_code(lines: list[str]) -> bool:
    return sum(FENCE.match(line) is not None for line in lines) % 2 == 1


def _short_lines(text: str, limit: int) -> list[str]:
    """Return the lines; one that is too long for a part is cut, at a space if there is one."""
    room = limit // 2  # a unit is at least half a character
    found: list[str] = []
    for line in text.split("\n"):
        rest = line
        while len(rest) > room:
            at = rest.rfind(" ", room // 2, room) + 1 or room
            found.append(rest[:at])
            rest = rest[at:]
        found.append(rest)
    return found
