"""All commands of people and clients, as one closed tagged union. (Shell commands are tasks: `task.py`.)

A command is a request in the imperative. It carries no id of its own: the id is minted by the
client and travels beside it (`Idempotency-Key`), so that a retry is stored once.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from holdfast.domain.command import TEXT_LIMIT, Command, InputId, InputMode, Name, Path, Text, Title
from holdfast.domain.events.card import BlockKind, CardStatus, ResumePolicy
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.events.task import Lifetime, TaskOutcome

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


WhatRuns = Literal["keep", "stop"]


class CreateSession(Command, frozen=True):
    """Begin a conversation, at once with its first message if there is a text."""

    text: Text | None = None
    profile: Name | None = None
    cwd: Path | None = None
    title: Title | None = None


class SendMessage(Command, frozen=True):
    """Say something. While a turn runs it waits (`queue`), joins (`steer`) or stops it (`interrupt`)."""

    text: Text
    mode: InputMode = "queue"


class ReviseInput(Command, frozen=True):
    """Change a message that no turn has taken yet: its text, its mode, its place in the queue (from 1)."""

    input: InputId
    text: Text | None = None
    mode: InputMode | None = None
    place: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None


class WithdrawInput(Command, frozen=True):
    """Take a message back that no turn has taken yet."""

    input: InputId


class StopTurn(Command, frozen=True):
    """End the running turn; queued messages stay. With `turn` only that one, and not the one after it."""

    turn: Annotated[int, msgspec.Meta(ge=1)] | None = None


class AnswerWait(Command, frozen=True):
    """Answer what a turn waits for, once.

    A question takes any text, an approval `allow`, `call`, `session`, `always` or `deny`, a context that is too long
    `try again` or `digest`, anything else `go on`.
    """

    wait: Name
    answer: Text
    note: Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)] = ""


class ChooseAgent(Command, frozen=True):
    """Go on with another profile, or with another model of it (an empty one is the profile's own)."""

    profile: Name | None = None
    model: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class UndoTurn(Command, frozen=True):
    """Take the last turn out of what the model sees. It stays in the log; effects are not taken back."""


class DismissFailure(Command, frozen=True):
    """Take the failed turn of a session out of the inbox; nothing else changes."""


class ForkSession(Command, frozen=True):
    """Begin a new session with everything up to a version of this one, by default all of it."""

    version: Annotated[int, msgspec.Meta(ge=1)] | None = None
    title: Title | None = None


class RenameSession(Command, frozen=True):
    """Give it another title."""

    title: Title


class ArchiveSession(Command, frozen=True):
    """Take it out of the default list; nothing is deleted. `running` says what becomes of what still runs."""

    running: WhatRuns | None = None


class RestoreSession(Command, frozen=True):
    """Bring an archived session back."""


class PinSession(Command, frozen=True):
    """Keep it on top of the list, or not any more."""

    pinned: bool = True


class DeleteSession(Command, frozen=True):
    """Delete the session with all its events, for good. `running` says what becomes of what still runs."""

    running: WhatRuns | None = None


class ResetSession(Command, frozen=True):
    """Open a new chapter: the model's context begins anew, nothing is deleted.

    `running` says what becomes of what still runs; with `note` the agent writes one for the next chapter first.
    """

    running: WhatRuns | None = None
    note: bool = False


class UndoReset(Command, frozen=True):
    """Let the model see the chapter before again, too. What the reset stopped stays stopped."""


class SetResetPolicy(Command, frozen=True):
    """When this session is reset, whatever its profile says; what is null is left to that.

    With `merge`, what is null stays as it was chosen for this session before.
    """

    policy: ResetPolicy
    merge: bool = False


class CompactSession(Command, frozen=True):
    """Make the context shorter now: a summary takes the place of its oldest turns."""

    instructions: Annotated[str, msgspec.Meta(max_length=10_000)] = ""


class DetachTurn(Command, frozen=True):
    """Make the running turn a task of its own: it moves nowhere, and its end is kept in the archive."""


class StartCommand(Command, frozen=True):
    """Run a command that is kept: a text for the shell, or its words. It outlives the gateway."""

    shell: Text | None = None
    argv: Annotated[list[str], msgspec.Meta(min_length=1, max_length=10_000)] | None = None
    name: Title | None = None
    cwd: Path | None = None
    env: dict[str, str] | None = None
    """All that it gets; by default the gateway's own without its keys. It is never written down."""
    lifetime: Lifetime = "persist"
    until: Annotated[int, msgspec.Meta(ge=0)] | None = None
    session: Name | None = None
    notify: bool = False
    stdin: bool = False


class StartAgent(Command, frozen=True):
    """Let an agent work on something in the background, in a session of its own."""

    prompt: Text
    profile: Name | None = None
    cwd: Path | None = None
    title: Title | None = None
    session: Name | None = None
    """The session that gets a note about its end."""
    notify: bool = False


class StopTask(Command, frozen=True):
    """End a task: a command is asked, then after 5 s forced; with `force` at once."""

    force: bool = False


class WriteTask(Command, frozen=True):
    """Type something into a command that keeps its input open."""

    text: Annotated[str, msgspec.Meta(max_length=65_536)] = ""
    close: bool = False


class PinTask(Command, frozen=True):
    """Keep a task whatever is pruned, or not any more."""

    pinned: bool = True


class PruneTasks(Command, frozen=True):
    """Delete ended tasks with their output. All conditions that are given must hold; pinned ones stay.

    Without `confirm` it only says what would go.
    """

    older_than_ms: Annotated[int, msgspec.Meta(ge=0)] | None = None
    larger_than: Annotated[int, msgspec.Meta(ge=0)] | None = None
    keep_last: Annotated[int, msgspec.Meta(ge=0)] | None = None
    state: TaskOutcome | None = None
    confirm: bool = False


SessionCommand = (
    SendMessage
    | ReviseInput
    | WithdrawInput
    | StopTurn
    | AnswerWait
    | ChooseAgent
    | UndoTurn
    | DismissFailure
    | RenameSession
    | ArchiveSession
    | RestoreSession
    | PinSession
    | UndoReset
    | SetResetPolicy
    | CompactSession
)
TaskCommand = StartCommand | StartAgent | StopTask | WriteTask | PinTask | PruneTasks
AnyCommand = (
    CreateSession
    | SessionCommand
    | ForkSession
    | DetachTurn
    | ResetSession
    | DeleteSession
    | TaskCommand
    | CreateCard
    | CardCommand
    | BoardCommand
)
