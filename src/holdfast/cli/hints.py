"""Commands that a message names: they repeat the `--home` that was given, so that they work as printed."""

from __future__ import annotations

import re

from holdfast.cli.commands import COMMANDS
from holdfast.domain.errors import HoldfastError

NAMES = "|".join(name for section in COMMANDS.values() for name in section)
COMMAND = re.compile(rf"(?<![\w/.-])holdfast (?=(?:{NAMES})\b)")
_program = "holdfast"


def use_home(given: str | None) -> None:
    """Remember the home of this call. One that every other call finds by itself need not be repeated."""
    global _program  # noqa: PLW0603 (one call of the command line has one home)
    from holdfast.config import find_home

    if not given or find_home(given) == find_home():
        _program = "holdfast"
    else:
        import shlex

        _program = f"holdfast --home {shlex.quote(given)}"


def program() -> str:
    """`holdfast`, with the home if it has to be named."""
    return _program


def with_home(text: str) -> str:
    """A text with the home in every command that it names."""
    return text if _program == "holdfast" else COMMAND.sub(lambda _: f"{_program} ", text)


def error_text(error: HoldfastError) -> str:
    """The message and the hint of an error."""
    return with_home(f"{error.message} {error.hint}".strip())
