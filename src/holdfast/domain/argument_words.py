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
DEFAULT_WORDS = {
    ("background", "false"): "in the foreground",
    ("lifetime", "session"): "ends with the session",
    ("notify", "false"): "no notification when it ends",
    ("stdin", "false"): "no input",
}


def argument_word(name: str) -> str:
    """Return what people call an argument."""
    return ARGUMENT_WORDS.get(name) or name.replace("_", " ")


def default_words(name: str, value: str) -> str:
    """Return a phrase for an argument that the call left out, and its default value."""
    if (name, value) in DEFAULT_WORDS:
        return DEFAULT_WORDS[name, value]
    if name == "timeout":
        return f"waits up to {value} s"
    word = argument_word(name)
    if value == "true":
        return word
    return f"no {word}" if value in ("", "false") else f"{word} {value}"
