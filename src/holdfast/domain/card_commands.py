"""Commands about cards and boards."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.domain.command import Command, Name, Text, Title
from holdfast.domain.events.card import BlockKind, CardStatus, ResumePolicy

Workspace = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"^(scratch|(dir|worktree):.+)$")]
CardId = Annotated[str, msgspec.Meta(min_length=4, max_length=32)]
BoardName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Priority = Annotated[int, msgspec.Meta(ge=-1000, le=1000)]
Milliseconds = Annotated[int, msgspec.Meta(ge=1_000, le=366 * 86_400_000)]
Attempts = Annotated[int, msgspec.Meta(ge=1, le=100)]
Body = Annotated[str, msgspec.Meta(max_length=200_000)]


class CreateBoard(Command, frozen=True):
    """Make a board."""

    board: BoardName
    title: Title | None = None


class PauseBoard(Command, frozen=True):
    """Start nothing on it; what runs goes on."""


class ResumeBoard(Command, frozen=True):
    """Start cards again; an archived one comes back into the list."""


class ArchiveBoard(Command, frozen=True):
    """Take it out of the list; nothing on it may run."""


class CreateCard(Command, frozen=True):
    """Write work down. A card without parents is ready, unless it is put into triage."""

    title: Title
    body: Body = ""
    board: BoardName = "default"
    profile: Name | None = None
    workspace: Workspace = "scratch"
    priority: Priority = 0
    parents: Annotated[list[CardId], msgspec.Meta(max_length=100)] = msgspec.field(default_factory=list)
    resume: ResumePolicy | None = None
    max_runtime_ms: Milliseconds | None = None
    max_attempts: Attempts | None = None
    triage: bool = False
    at: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Not before this time."""
    after_ms: Annotated[int, msgspec.Meta(ge=0, le=10**13)] | None = None
    """A delay instead of a time: it is the same when the command is repeated."""
    session: Name | None = None
    """The session that gets notes about its blocks and its end."""


class EditCard(Command, frozen=True):
    """Change what it says; what is null stays. Not while it runs, but for its priority."""

    title: Title | None = None
    body: Body | None = None
    profile: Name | None = None
    workspace: Workspace | None = None
    priority: Priority | None = None
    resume: ResumePolicy | None = None
    max_runtime_ms: Milliseconds | None = None
    max_attempts: Attempts | None = None


class CommentCard(Command, frozen=True):
    """Say something: a worker hears it at its next step, else the next one as its next turn."""

    text: Text


class LinkCard(Command, frozen=True):
    """Let it wait for another card."""

    parent: CardId


class UnlinkCard(Command, frozen=True):
    """Do not let it wait for that card any more."""

    parent: CardId


class FollowCard(Command, frozen=True):
    """Tell a session of its blocks, failures and end, once each; or not any more."""

    session: Name
    following: bool = True


class MoveCard(Command, frozen=True):
    """Put it into another column: triage, todo, scheduled (with a time), review, and ready unless it runs. A running
    one is stopped.
    """

    status: CardStatus
    at: Annotated[int, msgspec.Meta(ge=0)] | None = None


class BlockCard(Command, frozen=True):
    """It cannot go on without somebody. A running one is stopped."""

    reason: Text
    kind: BlockKind = "needs_input"


class UnblockCard(Command, frozen=True):
    """Let it go on, with a comment if there is one: in the session of its last run, or with a fresh one."""

    text: Text | None = None
    fresh: bool = False


class RetryCard(Command, frozen=True):
    """Once more, whatever became of it: blocked, done, in review or cooling down."""

    text: Text | None = None
    fresh: bool = False


class StopCard(Command, frozen=True):
    """End its run; it is blocked until somebody lets it go on."""

    reason: Title | None = None


class CompleteCard(Command, frozen=True):
    """It is done, a person says so. A running one is stopped."""

    summary: Body = ""


class ArchiveCard(Command, frozen=True):
    """Take it off the board. Its workspace goes only when nothing would be lost with it."""


CardCommand = (
    EditCard
    | CommentCard
    | LinkCard
    | UnlinkCard
    | FollowCard
    | MoveCard
    | BlockCard
    | UnblockCard
    | RetryCard
    | StopCard
    | CompleteCard
    | ArchiveCard
)
BoardCommand = CreateBoard | PauseBoard | ResumeBoard | ArchiveBoard
