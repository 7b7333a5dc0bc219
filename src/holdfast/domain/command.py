"""The base of all commands, and the values that many of them take."""

from __future__ import annotations

from typing import Annotated

import msgspec

TEXT_LIMIT = 1_000_000
TITLE_LIMIT = 200

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_LIMIT)]
Title = Annotated[str, msgspec.Meta(min_length=1, max_length=TITLE_LIMIT)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
InputId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="command", tag=True):
    """Base of all commands; `command` on the wire is the class name and may be left out."""
