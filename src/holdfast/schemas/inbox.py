"""What waits for a person, in responses."""

from __future__ import annotations

import msgspec

from holdfast.domain.events.parts import ShownArgument


class InboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for a person."""

    kind: str
    id: str
    """The id of the wait, the card or the session, as the commands take it."""
    title: str
    """The title of the session or the card."""
    what: str
    since: int
    commands: list[str]
    """Commands that settle it; any one of them is enough."""
    link: str
    """Its page in the dashboard."""
    stream: str
    version: int
    """The version of the event in `stream` that it is based on."""
    session: str
    """The session that waits or failed, or that of a card's last run; empty when there is none."""
    number: int = 0
    """The number of the card (`HF-118`); 0 when it is not about a card."""
    node: str = ""
    """Where there are several nodes: the one that worked on it last, or that the card asks for."""


class WaitView(msgspec.Struct, frozen=True, kw_only=True):
    """A question, an approval or another wait of a turn."""

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
    """When it ends without an answer; an approval is then denied (`approval_timeout` of the profile)."""
    opened_at: int
    shown: list[ShownArgument]
    """The arguments of a call that waits for approval, shortened; the change of a file as `diff`."""


class WaitDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A wait, with the full call that it is about."""

    wait: WaitView
    arguments: str
    """The full arguments of the call; empty once the wait is over."""


class Inbox(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that waits for a person."""

    entries: list[InboxEntry]
    """The first 500, longest waiting first."""
    total: int
    waits: list[WaitView]
    """The waits of turns among the entries, with all that is needed to answer them."""
