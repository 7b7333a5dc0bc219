"""Any program whose plain output is its answer. Pure."""

from __future__ import annotations

from holdfast.runtime.external.command.items import Item, SessionNamed, TextAdded
from holdfast.tasks.plain_text import plain


def parse_plain(line: bytes) -> list[Item]:
    """Return a line as a piece of the answer, without colours. The agent does not say which session it is."""
    return [SessionNamed(""), TextAdded(plain(line) + "\n")]
