"""Text that fits a terminal: widths, tables, times, and nothing that could command the terminal."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import category, east_asian_width

import click

UNLIMITED = 100_000
ELLIPSIS = "…"
GAP = "  "
MIN_COLUMN = 4
JOINER, EMOJI_STYLE, SKIN_TONES = "\u200d", "\ufe0f", "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
"""What makes one emoji of several characters."""
SHORT_ID = 8
"""How many characters of an ID are shown; any unique prefix is accepted."""
LONG_ID = 16
"""How many characters a whole ID has."""
_CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
# Characters that reorder or hide text on the screen, so that it would read otherwise than it is.
_REORDERING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, *range(0xE0000, 0xE0080))
_CONTROLS |= dict.fromkeys((0x2028, 0x2029, *_REORDERING))
_ESCAPED = {code: json.dumps(chr(code))[1:-1] for code in _CONTROLS if code >= 0x80} | {0x7F: "\\u007f"}

STATE_COLORS = {
    "running": "green",
    "queued": "cyan",
    "compacting": "cyan",
    "ready": "cyan",
    "waiting": "yellow",
    "blocked": "yellow",
    "review": "yellow",
    "suspended": "yellow",
    "failed": "red",
    "lost": "red",
    "unknown": "yellow",
    "stopped": "magenta",
}


def clean(text: str) -> str:
    """Without control characters: what an agent says must not command the terminal."""
    return text.translate(_CONTROLS)


def escaped_json(text: str) -> str:
    """JSON for a terminal: the same value, with what could command the terminal in escapes."""
    return text.translate(_ESCAPED)


def one_line(text: str) -> str:
    """Clean, and with every run of white space as one blank."""
    return " ".join(clean(text).split())


def dim(text: str) -> str:
    """Less important."""
    return click.style(text, dim=True)


def state(word: str) -> str:
    """A state in its colour."""
    color = STATE_COLORS.get(word)
    return click.style(word, fg=color) if color is not None else dim(word)


def terminal_width() -> int:
    """Columns of the terminal; a pipe has no edge."""
    return shutil.get_terminal_size((UNLIMITED, 24)).columns


def width(text: str) -> int:
    """Columns that a text takes: wide characters two, combining ones none, an emoji of several characters two."""
    if text.isascii():
        return len(text)
    end = total = 0
    while end < len(text):
        end, columns = _next_character(text, end)
        total += columns
    return total


def _columns(character: str) -> int:
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def _next_character(text: str, start: int) -> tuple[int, int]:
    """Where the character that begins here ends, with all that is joined to it, and its columns."""
    columns, end = _columns(text[start]), start + 1
    while end < len(text) and not text[end].isascii():
        if text[end] == EMOJI_STYLE:
            columns = 2
        elif text[end] == JOINER and _is_symbol(text, end + 1):
            end += 1
        elif _columns(text[end]) and not (text[end] in SKIN_TONES and _is_symbol(text, start)):
            break
        end += 1
    return end, columns


def _is_symbol(text: str, place: int) -> bool:
    """Whether there is a pictogram, which most emoji are."""
    return place < len(text) and category(text[place]) == "So"


def _fitting(text: str, limit: int, start: int = 0) -> int:
    """The length of the beginning that fits into this many columns; the rest is not examined."""
    if 2 * (len(text) - start) <= limit:  # no character is wider than two columns
        return len(text)
    if text.isascii():
        return min(start + max(0, limit), len(text))
    taken, end = 0, start
    while end < len(text):
        begin = end
        end, columns = _next_character(text, begin)
        taken += columns
        if taken > limit:
            return begin
    return len(text)


def shorten(text: str, limit: int) -> str:
    """At most that many columns, with … where something is missing."""
    if width(text) <= limit:
        return text
    return text[: _fitting(text, limit - 1)].rstrip() + ELLIPSIS


def wrap(text: str, limit: int) -> list[str]:
    """Lines of at most that many columns, broken at blanks where there are any."""
    lines: list[str] = []
    for line in text.expandtabs(4).split("\n"):
        start = 0
        while (fits := _fitting(line, limit, start)) < len(line):
            end = max(start + 1, fits)
            blank = line.rfind(" ", start + 1, end + 1)
            if blank > 0 and _word_fits(line, limit, blank + 1):
                end = blank
            lines.append(line[start:end].rstrip())
            start = end
            while line[start : start + 1] == " ":
                start += 1
        lines.append(line[start:].rstrip())
    return lines


def wrap_at_most(text: str, limit: int, count: int) -> list[str]:
    """At most this many lines; the last one says that there is more."""
    lines = wrap(text, max(limit, 8))
    if len(lines) <= count:
        return lines
    return [*lines[: count - 1], shorten(" ".join(lines[count - 1 :]), limit)]


def _word_fits(line: str, limit: int, start: int) -> bool:
    end = _fitting(line, limit, start)
    return end == len(line) or " " in line[start : end + 1]


def pad(text: str, columns: int) -> str:
    """Filled up with blanks."""
    return text + " " * (columns - width(text))


def plural(count: int, noun: str) -> str:
    """1 event, 2 events."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def unique_length(ids: list[str]) -> int:
    """How much of an id must be shown so that no two look the same."""
    length = SHORT_ID
    while len({id[:length] for id in ids}) < len(set(ids)):
        length += 1
    return length


# --- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading; whether it is a number, holds states, may be shortened, or is left out when all is `-`."""

    title: str
    right: bool = False
    states: bool = False
    flexible: bool = False
    optional: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """A table that fits: the widest of the flexible columns is shortened first, the others only in need.

    An ID in the first column is never shortened: nobody could type it.
    """
    used = [
        place for place, column in enumerate(columns) if not column.optional or any(row[place] != "-" for row in rows)
    ]
    columns = [columns[place] for place in used]
    cells = [[one_line(row[place]) for place in used] for row in rows]
    widths = [
        max(width(column.title), *(width(row[index]) for row in cells)) if cells else width(column.title)
        for index, column in enumerate(columns)
    ]
    room = terminal_width() - len(GAP) * (len(columns) - 1)
    flexible = [index for index, column in enumerate(columns) if column.flexible]
    _squeeze(widths, flexible, room)
    _squeeze(widths, list(range(1 if widths[0] <= LONG_ID else 0, len(columns))), room)
    lines = [dim(_row(columns, [column.title for column in columns], widths, plain=True))]
    lines += [_row(columns, row, widths) for row in cells]
    return "\n".join(lines)


def _squeeze(widths: list[int], places: list[int], room: int) -> None:
    """Take from the widest until it fits, but leave a readable rest."""
    while (excess := sum(widths) - room) > 0 and places:
        widest = max(places, key=lambda place: widths[place])
        second = max((widths[place] for place in places if place != widest), default=0)
        smaller = max(widths[widest] - excess, second - 1, MIN_COLUMN)
        if smaller >= widths[widest]:
            return
        widths[widest] = smaller


def _row(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], *, plain: bool = False) -> str:
    parts: list[str] = []
    for column, cell, columns_wide in zip(columns, cells, widths, strict=True):
        shown = shorten(cell, columns_wide)
        blanks = " " * (columns_wide - width(shown))
        if column.states and not plain:
            shown = state(shown)
        parts.append(blanks + shown if column.right else shown + blanks)
    return GAP.join(parts).rstrip()


def details(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values below each other; long values continue in the next line."""
    widest = max(width(name) for name, _ in rows)
    room = max(terminal_width() - widest - len(GAP), 3 * MIN_COLUMN)
    lines: list[str] = []
    for name, value in rows:
        first, *more = wrap(clean(value), room)
        lines.append(f"{dim(pad(name, widest))}{GAP}{first}".rstrip())
        lines += [" " * (widest + len(GAP)) + line for line in more]
    return "\n".join(lines)


def details_short(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values, one a line; long values are shortened to the terminal."""
    widest = max(width(name) for name, _ in rows)
    room = max(terminal_width() - widest - len(GAP), MIN_COLUMN)
    return "\n".join(f"{dim(pad(name, widest))}{GAP}{shorten(one_line(value), room)}" for name, value in rows)


# --- times ----------------------------------------------------------------------------------------


def clock(at_ms: int) -> str:
    """The local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000))


def format_date(at_ms: int) -> str:
    """The local date."""
    return time.strftime("%Y-%m-%d", time.localtime(at_ms / 1000))


def format_datetime(at_ms: int) -> str:
    """Date and time."""
    return f"{format_date(at_ms)} {clock(at_ms)}"


def format_time(at_ms: int) -> str:
    """The time of day; with its date when that is not today."""
    today = time.strftime("%Y-%m-%d")
    return clock(at_ms) if format_date(at_ms) == today else format_datetime(at_ms)


def ago(at_ms: int) -> str:
    """How long ago, in one unit; a date when it is long."""
    seconds = max(0, time.time() - at_ms / 1000)
    if seconds < 10:
        return "just now"
    for size, unit in ((60, "s"), (3600, "min"), (86_400, "h")):
        if seconds < size:
            step = {"s": 1, "min": 60, "h": 3600}[unit]
            return f"{int(seconds // step)} {unit} ago"
    if seconds < 14 * 86_400:
        return f"{int(seconds // 86_400)} d ago"
    return format_date(at_ms)


def duration(ms: int) -> str:
    """A span of time in the unit that fits."""
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def age(ms: int) -> str:
    """How long something has lasted, for a column: one unit, or hours and minutes."""
    seconds = max(0, ms) // 1000
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 86_400:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds // 86_400} d"
