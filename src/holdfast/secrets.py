"""The values that must not be shown: those of every environment variable that the settings name for a key or a server.

They are replaced in all that goes into the log or to a model; the file with a command's output keeps what it printed.
A value shorter than `SECRET_LENGTH` is no secret but a placeholder or a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

SECRET_LENGTH = 8
LINE_LENGTH = 16
"""A line of a secret with several lines is hidden on its own if it has at least this length."""
EDGE_LENGTH = 6
"""A part of a secret at the beginning or the end of a text is hidden, too, if it has at least this length."""
Mask = Callable[[str], str]
"""Returns a text without the secret values that are known."""


class Secrets:
    """Known secret values, by the names of the variables that hold them."""

    def __init__(self, values: Mapping[str, str | None] = {}) -> None:
        self._names: dict[str, str] = {}
        for name, value in values.items():
            if value is not None and len(value) >= SECRET_LENGTH:
                self._names |= {form: name for form in _forms(value) if form not in self._names}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def mask(self, text: str) -> str:
        """The text without them, also where it begins or ends in the middle of one."""
        if self._pattern is None:
            return text
        text = self._pattern.sub(lambda found: _hidden(self._names[found[0]]), text)
        for form, name in self._names.items():
            for length in range(min(len(form) - 1, len(text)), EDGE_LENGTH - 1, -1):
                if text.endswith(form[:length]):
                    text = text[:-length] + _hidden(name)
                if text.startswith(form[-length:]):
                    text = _hidden(name) + text[length:]
        return text


NO_SECRETS = Secrets()


def _hidden(name: str) -> str:
    return f"[hidden: the value of {name}]"


def is_path(value: str) -> bool:
    """Whether it only says where something is: a path, or several."""
    try:
        return value.startswith("/") and all(Path(part).exists() for part in value.split(":") if part)
    except (OSError, ValueError):
        return False


def _forms(value: str) -> list[str]:
    """Return the value as it is, as in JSON and in a URL, and its lines."""
    lines = [line for line in value.splitlines() if len(line) >= LINE_LENGTH] if "\n" in value else []
    escaped = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe=""))
    return [value, *escaped, *lines]
