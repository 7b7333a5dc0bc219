"""All commands of people and clients, as one closed tagged union. (Shell commands are tasks: `task.py`.)

A command is a request in the imperative. Its id is not part of it: the client creates the id and sends it beside the
command (`Idempotency-Key`), so that a retry is stored once.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from holdfast.domain.command import (
    TEXT_LIMIT,
    Command,
    InputId,
    InputMode,
    ModelName,
    Name,
    NodeWord,
    Path,
    SessionMode,
    Text,
    Title,
)
from holdfast.domain.events.card import BlockKind, CardStatus, ResumePolicy
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.events.parts import NotifyChoice
from holdfast.domain.task_commands import TaskCommand

Workspace = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"^(scratch|(dir|worktree):.+)$")]
CardId = Annotated[str, msgspec.Meta(min_length=1, max_length=32)]  # its number, its id or a unique prefix
BoardName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Priority = Annotated[int, msgspec.Meta(ge=-1000, le=1000)]
Milliseconds = Annotated[int, msgspec.Meta(ge=1_000, le=366 * 86_400_000)]
Attempts = Annotated[int, msgspec.Meta(ge=1, le=100)]
Body = Annotated[str, msgspec.Meta(max_length=200_000)]


class CreateBoard(Command, frozen=True):
    """Create a board."""

    board: BoardName
    title: Title | None = None


class PauseBoard(Command, frozen=True):
    """Start no more cards of the board; running cards continue."""


class ResumeBoard(Command, frozen=True):
    """Start cards again; an archived board returns to the list."""


class ArchiveBoard(Command, frozen=True):
    """Remove the board from the list; none of its cards may be running."""


class CreateCard(Command, frozen=True):
    """Create a card. Without parents it is ready, unless it is put into triage."""

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
    """A delay instead of a time, so that a repeated command is the same."""
    session: Name | None = None
    """The session that is notified about its blocks and its end."""
    tell: NotifyChoice = "default"
    """Whether people are notified of its blocks and its end."""
    node: NodeWord = ""
    """The name or label of the nodes on which it may run."""


class EditCard(Command, frozen=True):
    """Change fields of the card; null stays as it is. While it is running, only limits, priority and `tell`
    can be changed.
    """

    title: Title | None = None
    body: Body | None = None
    profile: Name | None = None
    workspace: Workspace | None = None
    priority: Priority | None = None
    resume: ResumePolicy | None = None
    max_runtime_ms: Milliseconds | None = None
    max_attempts: Attempts | None = None
    tell: NotifyChoice | None = None
    node: NodeWord | None = None
    """The name or label of the nodes on which it may run; empty is any."""


class CommentCard(Command, frozen=True):
    """Comment on the card. A running worker reads it at its next step; otherwise the next worker reads it."""

    text: Text


class LinkCard(Command, frozen=True):
    """Make the card wait for another card."""

    parent: CardId


class UnlinkCard(Command, frozen=True):
    """Stop waiting for another card."""

    parent: CardId


class FollowCard(Command, frozen=True):
    """Notify a session of each block, failure and end of the card, or stop that."""

    session: Name
    following: bool = True


class MoveCard(Command, frozen=True):
    """Move the card: triage, todo, scheduled (with a time), review, or ready if not running. A run is stopped."""

    status: CardStatus
    at: Annotated[int, msgspec.Meta(ge=0)] | None = None


class BlockCard(Command, frozen=True):
    """Block the card until a person unblocks it. A running card is stopped."""

    reason: Text
    kind: BlockKind = "needs_input"


class UnblockCard(Command, frozen=True):
    """Continue a blocked card, optionally with a comment: in the session of its last run, or in a new one."""

    text: Text | None = None
    fresh: bool = False


class RetryCard(Command, frozen=True):
    """Run the card again, whatever its state: blocked, done, in review or waiting for the next attempt."""

    text: Text | None = None
    fresh: bool = False


class StopCard(Command, frozen=True):
    """Stop the run; the card is blocked until a person unblocks it."""

    reason: Title | None = None


class CompleteCard(Command, frozen=True):
    """Mark the card as done. A running card is stopped."""

    summary: Body = ""


class ArchiveCard(Command, frozen=True):
    """Archive the card. Its workspace is removed only if nothing would be lost."""


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


WhatRuns = Literal["keep", "stop"]


class CreateSession(Command, frozen=True):
    """Start a session, with a first message if there is a text."""

    text: Text | None = None
    profile: Name | None = None
    model: ModelName | None = None
    cwd: Path | None = None
    title: Title | None = None
    mode: SessionMode = "profile"
    node: NodeWord = ""
    """The name or label of the nodes on which it may run."""


class SendMessage(Command, frozen=True):
    """Send a message. While a turn is running, it waits (`queue`), joins it (`steer`) or stops it (`interrupt`)."""

    text: Text
    mode: InputMode = "queue"


class ReviseInput(Command, frozen=True):
    """Change a message that no turn has taken yet: its text, its mode, its place in the queue (from 1)."""

    input: InputId
    text: Text | None = None
    mode: InputMode | None = None
    place: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None


class WithdrawInput(Command, frozen=True):
    """Withdraw a message that no turn has taken yet."""

    input: InputId


class StopTurn(Command, frozen=True):
    """Stop the running turn; queued messages stay. With `turn`, only if that turn is still running."""

    turn: Annotated[int, msgspec.Meta(ge=1)] | None = None


class AnswerWait(Command, frozen=True):
    """Answer a wait of a turn, once.

    A question takes any text, an approval `allow`, `call`, `session`, `always` or `deny`, a context that is too long
    `try again` or `digest`, any other wait `go on`.
    """

    wait: Name
    answer: Text
    note: Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)] = ""


class ChooseAgent(Command, frozen=True):
    """Switch to another profile, or to another model (empty: the profile's own)."""

    profile: Name | None = None
    model: ModelName | None = None


class ChooseMode(Command, frozen=True):
    """Choose what the agent may do at most: as its profile says, ask before every change and command, or only read."""

    mode: SessionMode


class ChooseNode(Command, frozen=True):
    """Let the session run on another node, or on any that has a label; empty is any node."""

    node: NodeWord


class UndoTurn(Command, frozen=True):
    """Hide the last turn from the model. It stays in the log, and its effects are not undone."""


class RepeatTurn(Command, frozen=True):
    """Undo a turn (by default the last one) and all later ones, and send its messages again, or `text` instead."""

    turn: Annotated[int, msgspec.Meta(ge=1)] | None = None
    text: Text | None = None


class DismissFailure(Command, frozen=True):
    """Remove the failed turn of a session from the inbox; nothing else changes."""


class ForkSession(Command, frozen=True):
    """Create a new session with the history of this one up to a version, by default all of it."""

    version: Annotated[int, msgspec.Meta(ge=1)] | None = None
    title: Title | None = None


class AdoptSession(Command, frozen=True):
    """Create a session that continues one of an external agent, which was begun in that agent's own terminal."""

    session: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    """The agent's own id of it, or a unique prefix of 4 or more characters."""
    profile: Name | None = None
    """By default that with the agent's name, or the only one that uses it."""
    anyway: bool = False
    """Although it was adopted before, or is still open elsewhere."""


class RenameSession(Command, frozen=True):
    """Change the title of the session."""

    title: Title


class ArchiveSession(Command, frozen=True):
    """Hide the session from the default list; nothing is deleted. `running` says what happens to running tasks."""

    running: WhatRuns | None = None


class RestoreSession(Command, frozen=True):
    """Return an archived session to the list."""


class PinSession(Command, frozen=True):
    """Pin the session to the top of the list, or unpin it."""

    pinned: bool = True


class SetSessionTell(Command, frozen=True):
    """Choose whether people are notified of the waits of the session and of the ends of its turns."""

    tell: NotifyChoice


class DeleteSession(Command, frozen=True):
    """Delete the session with all its events permanently. `running` says what happens to running tasks."""

    running: WhatRuns | None = None


class ResetSession(Command, frozen=True):
    """Open a new chapter: the model starts with an empty context, and nothing is deleted. `running` says what happens
    to running tasks. With `note`, the agent first writes a note for the next chapter.
    """

    running: WhatRuns | None = None
    note: bool = False


class UndoReset(Command, frozen=True):
    """Undo the last reset: the model sees the previous chapter again. Tasks that the reset stopped stay stopped."""


class SetResetPolicy(Command, frozen=True):
    """Set when this session is reset, instead of what its profile says; null leaves a field to the profile.

    With `merge`, null keeps what was set for this session before.
    """

    policy: ResetPolicy
    merge: bool = False


class CompactSession(Command, frozen=True):
    """Summarise the oldest turns now, to make the context shorter."""

    instructions: Annotated[str, msgspec.Meta(max_length=10_000)] = ""


class DetachTurn(Command, frozen=True):
    """Move the running turn to the background: it becomes a task, and its end is recorded there."""


SessionCommand = (
    SendMessage
    | ReviseInput
    | WithdrawInput
    | StopTurn
    | AnswerWait
    | ChooseAgent
    | ChooseMode
    | ChooseNode
    | UndoTurn
    | RepeatTurn
    | DismissFailure
    | RenameSession
    | ArchiveSession
    | RestoreSession
    | PinSession
    | SetSessionTell
    | UndoReset
    | SetResetPolicy
    | CompactSession
)
AnyCommand = (
    CreateSession
    | SessionCommand
    | ForkSession
    | AdoptSession
    | DetachTurn
    | ResetSession
    | DeleteSession
    | TaskCommand
    | CreateCard
    | CardCommand
    | BoardCommand
)
