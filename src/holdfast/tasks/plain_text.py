"""Output of commands without control characters. It is stored raw."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]?"  # other sequences
)
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


def plain(data: bytes) -> str:
    """Return a text without escape sequences and control characters; lines that were overwritten as last shown."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return _without(text)


_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,4096})?\Z")


def coloured(data: bytes) -> str:
    """Return a text for a terminal, with colours but no other escape sequences."""
    pieces, at = [], 0
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    for colour in _COLOUR.finditer(text):
        pieces += [_without(text[at : colour.start()]), colour.group()]
        at = colour.end()
    return "".join([*pieces, _without(text[at:])])


def stripped(data: bytes) -> str:
    """Return a piece of a line without escape sequences and control characters, with what was overwritten."""
    return _CONTROL.sub("", _ESCAPES.sub("", data.decode("utf-8", "replace")))


def whole(data: bytes) -> bytes:
    """Return the bytes without an incomplete character or escape sequence at their end."""
    data = _UNFINISHED.sub(b"", data)
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
        if byte < 0x80:
            break
    return data


def _without(text: str) -> str:
    return _CONTROL.sub("", "\n".join(map(_last_written, _ESCAPES.sub("", text).split("\n"))))


def _last_written(line: str) -> str:
    """Return what a terminal shows of a line that was overwritten after carriage returns."""
    return line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line
