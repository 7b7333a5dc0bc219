"""What is answered about everything that waits for a person."""

from __future__ import annotations

import msgspec

from holdfast.board.inbox import InboxEntry
from holdfast.domain.events.parts import ShownArgument


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for a person."""

    id: str
    session: str
    title: str
    turn: int
    version: int
    purpose: str
    reason: str
    call: str
    choices: list[str]
    pattern: str
    until: int | None
    """When it ends by itself: an approval as denied, by the profile's `approval_timeout`."""
    opened_at: int
    shown: list[ShownArgument]
    """Every argument of a call that waits for an approval, long ones cut, and the change of a file as `diff`."""


class WaitDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for a person, and all of the call that it is about."""

    wait: Waiting
    arguments: str
    """The arguments of the call as the model gave them, nothing cut; empty when nobody waits any more."""


class Inbox(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that waits for a person."""

    entries: list[InboxEntry]
    """The first 500, longest waiting first."""
    total: int
    waits: list[Waiting]
    """Those of the entries that a turn waits for, with all that is needed to answer them."""
