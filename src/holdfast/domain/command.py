"""The base of all commands, and the values that commands and events share. Imports no events: clients load it too."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

TEXT_LIMIT = 1_000_000
TITLE_LIMIT = 200

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_LIMIT)]
Title = Annotated[str, msgspec.Meta(min_length=1, max_length=TITLE_LIMIT)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
ModelName = Annotated[str, msgspec.Meta(max_length=200)]
"""`demo` or PROVIDER:MODEL; empty for the profile's own."""
InputId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="command", tag=True):
    """Base of all commands; `command` on the wire is the class name and may be left out."""


InputMode = Literal["queue", "steer", "interrupt"]
NodeWord = Annotated[str, msgspec.Meta(max_length=63)]
"""The name or a label of a node; empty is any node."""
SessionMode = Literal["profile", "ask", "read"]
"""What an agent may do besides what its profile allows: nothing less, ask a person before every change and command, or
change nothing and run no command.
"""
MODES: dict[str, str] = {
    "profile": "as its profile says",
    "ask": "asks before every change and command",
    "read": "read only",
}
"""The modes in a few words; a newer gateway may know more of them."""
InputSource = Literal["message", "comment", "task", "run", "reminder"]
"""A person's message, a comment on the card that is worked on, the end of a task, the first words of a run, or the
question whether its card is done."""
