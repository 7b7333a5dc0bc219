"""Output of commands as plain text: stored raw, shown clean."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]?"  # anything else that begins so
)
_OVERWRITTEN = re.compile(r"[^\n\r]*\r(?=[^\n\r])")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(data: bytes) -> str:
    """Without escape sequences, without control and direction characters; of a line that was overwritten, the last."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return _CONTROL.sub("", _OVERWRITTEN.sub("", _ESCAPES.sub("", text)))
