"""What the arguments of a tool call are called where a person approves it; the dashboard has the same words."""

from __future__ import annotations

ARGUMENT_WORDS = {
    "cwd": "directory",
    "path": "file",
    "diff": "changes",
    "timeout": "seconds to wait",
    "notify": "notification when it ends",
    "stdin": "input kept open",
}


def argument_word(name: str) -> str:
    """Return what people call an argument."""
    return ARGUMENT_WORDS.get(name) or name.replace("_", " ")
