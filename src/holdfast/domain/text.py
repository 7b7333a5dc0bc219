"""Durations, sizes and short texts for people."""

from __future__ import annotations

import re

FENCE = re.compile(r"^ {0,3}(?:```|~~~).*$", re.MULTILINE)
RULE = re.compile(r"^ *(?:\|? *:?-{3,}:? *(?:\|[ :|-]*)?|[*_=]{3,})$", re.MULTILINE)
"""A line between parts, or between the head of a table and its rows."""
LINE_MARK = re.compile(r"^ *(?:#{1,6} +|> ?|[-*+] +(?:\[[ xX]\] +)?)", re.MULTILINE)
LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*(?: \"[^\"\n]*\")?\)")
CODE = re.compile(r"(`{1,3})(?! )([^`\n]+)(?<! )\1")
EMPHASIS = re.compile(r"(?<![\w/*\\])(\*{1,3}|~~)(?=[^\s*])([^*~\n]+?)(?<=\S)\1(?![\w*]|\.\w)")
CELLS = re.compile(r"^ *\|(.*)\| *$", re.MULTILINE)


def duration(milliseconds: int) -> str:
    """A duration in the two largest units."""
    seconds = max(0, milliseconds) // 1000
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} days"


def size(count: int) -> str:
    """A number of bytes: 812 B, 3.4 KiB, 17 MiB."""
    number = float(count)
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 10 else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB" if number < 10 else f"{number:,.0f} GiB"


def shorten(text: str, limit: int) -> str:
    """Return a text on one line, cut to this many characters."""
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def without_markdown(text: str) -> str:
    """Return a text without the signs of Markdown, for titles and previews. A star in a pattern of files stays."""
    text = RULE.sub("", FENCE.sub("", text))
    text = CELLS.sub(lambda row: row[1].replace("|", " "), text)
    text = LINK.sub(r"\1", LINE_MARK.sub("", text))
    text = CODE.sub(r"\2", text)
    return EMPHASIS.sub(r"\2", text)
