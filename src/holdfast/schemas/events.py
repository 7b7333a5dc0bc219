"""Records of the log on the wire, and text that is being streamed."""

from __future__ import annotations

import msgspec

from holdfast.domain.events import Record


class EventPage(msgspec.Struct, frozen=True):
    """Records after a cursor; ask again with the new one while there are more."""

    events: list[Record]
    cursor: int
    more: bool


class Delta(msgspec.Struct, frozen=True):
    """A piece of an answer that is still being spoken: a frame, not a fact."""

    turn: int
    step: int
    offset: int
    text: str
    thinking_offset: int
    thinking: str
