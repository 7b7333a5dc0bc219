"""The bases of everything that is stored: an event, and a part of one; and the parts that many events share."""

from __future__ import annotations

import msgspec


class EventPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A part of an event."""


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    gc=False,
    tag_field="kind",
    tag=True,
):
    """Base of all events; `kind` on the wire is the class name."""


class Usage(EventPart, frozen=True):
    """What one model call cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """In US dollars; None is unknown."""


class Problem(EventPart, frozen=True):
    """Why something failed, in words for a person."""

    code: str
    message: str
    hint: str = ""
    after_ms: int | None = None
    """How long whoever refused asks to wait."""


class ShownArgument(EventPart, frozen=True):
    """An argument of a call as a person sees it before the call is approved."""

    name: str
    value: str
    left_out: int = 0
    """How many characters of the value are not shown."""
    usual: bool = False
    """It is what holds when the call says nothing about it."""


class EventRef(msgspec.Struct, frozen=True, gc=False):
    """The event that a later sentence rests on: where it stands and when it was."""

    version: int
    at: int
