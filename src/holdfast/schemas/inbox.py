"""What waits for a person, on the wire."""

from __future__ import annotations

import msgspec

from holdfast.domain.events.parts import ShownArgument


class InboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for a person."""

    kind: str
    id: str
    """What the commands take: the id of the wait, of the card or of the session."""
    title: str
    """The title of the session or the card."""
    what: str
    since: int
    commands: list[str]
    """What to do about it; any one of them."""
    link: str
    """Where the dashboard shows it."""
    stream: str
    version: int
    """The stream that it is about, and the event that it rests on."""
    session: str
    """The session that waits or failed, or the one of a card's last run; empty when there is none."""


class WaitView(msgspec.Struct, frozen=True, kw_only=True):
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

    wait: WaitView
    arguments: str
    """The arguments of the call as the model gave them, nothing cut; empty when nobody waits any more."""


class Inbox(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that waits for a person."""

    entries: list[InboxEntry]
    """The first 500, longest waiting first."""
    total: int
    waits: list[WaitView]
    """Those of the entries that a turn waits for, with all that is needed to answer them."""
