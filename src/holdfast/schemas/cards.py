"""Boards, cards and runs on the wire."""

from __future__ import annotations

import msgspec

from holdfast.domain.card_number import card_label


class BoardView(msgspec.Struct, frozen=True, kw_only=True):
    """A board."""

    id: str
    title: str
    paused_by: str
    archived: bool
    created_at: int
    cards: int


class BoardList(msgspec.Struct, frozen=True):
    """All boards."""

    boards: list[BoardView]


class BoardAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command about a board was committed."""

    board: str
    version: int
    seq: int
    duplicate: bool


class CardView(msgspec.Struct, frozen=True, kw_only=True, rename={"retry_at": "again_at"}):
    """A card as a board shows it."""

    id: str
    number: int
    """What people call it, with `HF-` before it; unique in the home."""
    board: str
    title: str
    profile: str
    workspace: str
    priority: int
    status: str
    reason: str
    block_kind: str
    scheduled_at: int | None
    retry_at: int | None
    run: int
    session: str
    comments: int
    warning: str
    """Why its worker started a new session instead of continuing the last one."""
    created_by: str
    created_at: int
    moved_at: int
    updated_at: int
    version: int
    tell: str = "default"
    """Whether people are notified of it: `default` is by the rules of each destination, else `always` or `never`."""
    node: str = ""
    """The name or label of the nodes on which it may run; empty is any."""
    host: str = ""
    """Where there are several nodes: the one that works on it, that is to start it, or that worked on it last."""

    @property
    def label(self) -> str:
        """How people name it: `HF-118`."""
        return card_label(self.number, self.id)


class CardPage(msgspec.Struct, frozen=True):
    """A page of cards; `next` is the offset of the next page."""

    cards: list[CardView]
    next: int | None
    why: dict[str, str] = {}
    """On request: why waiting cards are not started, by card id; for the first 200 of them."""


class CardComment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment on a card."""

    comment: str
    text: str
    by: str
    at: int
    version: int


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at a card."""

    run: int
    session: str
    task: str
    profile: str
    resumes: int
    fresh_because: str
    workspace: str
    after_turn: int
    until_turn: int | None
    outcome: str
    failure: str
    reason: str
    counts: bool
    note: str
    started_at: int
    finished_at: int | None
    node: str = "local"
    """The node that started it."""
    input_tokens: int
    output_tokens: int
    cost: float | None


class CardDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A card with its comments, links and runs."""

    card: CardView
    body: str
    resume: str | None
    max_runtime_ms: int | None
    max_attempts: int | None
    attempts: int
    summary: str
    metadata: dict[str, str]
    artifacts: list[str]
    comments: list[CardComment]
    parents: list[CardView]
    children: list[CardView]
    followers: list[str]
    runs: list[RunView]
    why: str
    """Why it is not started; empty when nothing blocks it."""
    kept: str = ""
    """Of an archived card: the unsaved work because of which its workspace was kept."""
    limits: list[str]
    """Limits of its workers besides their profile; empty when a person created it."""


class CardAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command about a card was committed. `kept` is the unsaved work because of which its workspace was kept."""

    card: str
    number: int
    stream: str
    version: int
    seq: int
    duplicate: bool
    kept: str = ""

    @property
    def label(self) -> str:
        """How people name the card: `HF-118`."""
        return card_label(self.number, self.card)


class CardContext(msgspec.Struct, frozen=True, kw_only=True):
    """The first input of the next run, and the session that it would continue."""

    card: str
    resumes: int
    session: str
    fresh_because: str
    refused: str
    note: str
    text: str


class CardReleased(msgspec.Struct, frozen=True):
    """Whether the workspace of an archived card was removed."""

    card: str
    kept: str
    """The unsaved work because of which it was kept; empty when it was removed."""
