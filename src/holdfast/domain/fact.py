"""The two bases of everything that is stored: an event, and a part of one."""

from __future__ import annotations

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
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
