"""Sessions in requests and responses: lists, details, search."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from holdfast.domain.command import InputMode, Text


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command was committed. `input` is the id of the message, if it carried one."""

    session: str
    stream: str
    version: int
    seq: int
    input: str | None
    duplicate: bool
    warning: str = ""
    """What could not be done although the command was accepted, such as saving a permission."""


SessionKind = Literal["mine", "worker", "background"]
"""Of a person, of a worker on the board, or of an agent in the background."""


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list."""

    id: str
    title: str
    profile: str
    model: str
    cwd: str
    parent: str
    task: str
    created_at: int
    updated_at: int
    version: int
    archived: bool
    message_count: int
    queued: int
    turn: int
    turn_state: str | None
    state: str
    preview: str
    pinned: bool
    chapter: int
    tell: str = "default"
    """Whether people are notified of it: `default` is by the rules of each destination, else `always` or `never`."""
    unread: int = 0
    """Finished answers that this device has not read; 0 for the bearer token."""
    kind: str = "mine"
    """One of `SessionKind`."""
    host: str = ""
    """Where there are several nodes: the one that works on it or worked on it last, or that has its directory."""


class SessionPage(msgspec.Struct, frozen=True):
    """A page of the list; `next` is the cursor of the next page."""

    sessions: list[SessionView]
    next: str | None


class UnreadCount(msgspec.Struct, frozen=True):
    """How many sessions have answers that this device has not read, and how many answers that are."""

    sessions: int = 0
    messages: int = 0


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """What this device has not read in the sessions of the list, by their kind; zeros for the bearer token."""

    mine: UnreadCount = UnreadCount()
    worker: UnreadCount = UnreadCount()
    background: UnreadCount = UnreadCount()


class TurnView(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of a session."""

    turn: int
    state: str
    started_at: int
    finished_at: int | None
    steps: int
    resumes: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    reason: str


class QueuedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that no turn has taken yet. `version` is that of its event: its number in the log."""

    version: int
    input: str
    text: str
    mode: str
    by: str
    source: str
    at: int


class SessionDetail(msgspec.Struct, frozen=True):
    """One session with its turns and its queue."""

    session: SessionView
    turns: list[TurnView]
    queue: list[QueuedMessage]
    mode: str = "profile"
    """What its agent may do at most, besides what its profile allows: its own mode, or a stricter one inherited."""
    node: str = ""
    """The name or label of the nodes on which it may run; empty is any."""
    inherited_mode: str = "profile"
    """The part of that which it has from what created it, and which cannot be taken away."""


class QueueEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to a queued message: its text, its mode, its place (from 1). Omitted fields stay as they are."""

    text: Text | None = None
    mode: InputMode | None = None
    place: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a text was found."""

    session: str
    title: str
    version: int
    at: int
    role: str
    snippet: str


class SearchPage(msgspec.Struct, frozen=True):
    """What a search found, newest first."""

    hits: list[SearchHit]


class Delta(msgspec.Struct, frozen=True):
    """A piece of an answer that is still being generated; it is not stored."""

    turn: int
    step: int
    offset: int
    text: str
    thinking_offset: int
    thinking: str
