"""Boards, cards and runs on the wire."""

from __future__ import annotations

import msgspec


class BoardView(msgspec.Struct, frozen=True, kw_only=True):
    """A board."""

    id: str
    title: str
    paused_by: str
    archived: bool
    created_at: int
    cards: int


class BoardList(msgspec.Struct, frozen=True):
    """All of them."""

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
    """Why its worker began anew, where it could have been expected to go on."""
    created_by: str
    created_at: int
    moved_at: int
    updated_at: int
    version: int


class CardPage(msgspec.Struct, frozen=True):
    """A page of cards; `next` is where the following one begins."""

    cards: list[CardView]
    next: int | None
    why: dict[str, str] = {}
    """If asked for: why the cards that wait are not started, by their ids. Of the first 200 of them."""


class CardComment(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said about a card."""

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
    input_tokens: int
    output_tokens: int
    cost: float | None


class CardDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A card with all that belongs to it."""

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
    """Why it is not started; empty when nothing stands in the way."""
    kept: str = ""
    """Of an archived card: what would have been lost with its workspace, which is why that was kept."""
    limits: list[str]
    """What limits its workers besides their profile, in words; empty when a person created it."""


class CardAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command about a card was committed. `kept` says what of its workspace was not removed."""

    card: str
    stream: str
    version: int
    seq: int
    duplicate: bool
    kept: str = ""


class CardContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the next worker would be told, and whose session it would go on with."""

    card: str
    resumes: int
    session: str
    fresh_because: str
    refused: str
    note: str
    text: str


class CardDiff(msgspec.Struct, frozen=True):
    """What is different in the workspace, as far as git knows."""

    diff: str


class CardReleased(msgspec.Struct, frozen=True):
    """What became of the workspace of an archived card."""

    card: str
    kept: str
    """What would have been lost with it, so that it was kept; empty when it is gone."""
