"""What can happen to cards, their runs and boards. A card with its runs is one stream; a board is another."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.domain.events.actor import Actor
from holdfast.domain.events.parts import Event, NotifyChoice, Rights
from holdfast.domain.events.problem import Failure

CardStatus = Literal["triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done", "archived"]
BlockKind = Literal["needs_input", "dependency", "capability", "transient"]
ResumePolicy = Literal["auto", "resume", "fresh"]
RunOutcome = Literal["done", "blocked", "failed", "stopped", "lost"]


class CardCreated(Event, frozen=True):
    """A card was created."""

    card: str
    board: str
    title: str
    body: str
    by: Actor
    status: CardStatus
    profile: str = ""
    workspace: str = "scratch"
    """scratch, dir:PATH or worktree:REPO."""
    priority: int = 0
    parents: list[str] = msgspec.field(default_factory=list)
    resume: ResumePolicy | None = None
    max_runtime_ms: int | None = None
    max_attempts: int | None = None
    session: str = ""
    """The session that gets notes about its blocks and its end."""
    rights: Rights | None = None
    """What limits its workers besides their profile, when an agent created it; null when a person did."""
    number: int = 0
    """Its number (`HF-118`), unique in the home. The store sets it when it writes the event: 0 asks for the next."""
    tell: NotifyChoice = "default"
    """Whether people are notified of its blocks and its end."""
    node: str = ""
    """The name or label of the nodes on which it may run; empty is any."""


class CardEdited(Event, frozen=True):
    """Fields of the card were changed; null is unchanged."""

    card: str
    by: Actor
    title: str | None = None
    body: str | None = None
    profile: str | None = None
    workspace: str | None = None
    priority: int | None = None
    resume: ResumePolicy | None = None
    max_runtime_ms: int | None = None
    max_attempts: int | None = None
    tell: NotifyChoice | None = None
    node: str | None = None


class CardCommented(Event, frozen=True):
    """A comment on the card. The worker reads it at its next step, or as its next turn."""

    card: str
    comment: str
    text: str
    by: Actor


class CardLinked(Event, frozen=True):
    """It waits for another card."""

    card: str
    parent: str
    by: Actor


class CardUnlinked(Event, frozen=True):
    """It no longer waits for that card."""

    card: str
    parent: str
    by: Actor


class CardFollowed(Event, frozen=True):
    """A session follows the card, and gets a note about each block, failure and end; or it stopped following."""

    card: str
    session: str
    following: bool
    by: Actor


class CardMoved(Event, frozen=True):
    """It was put into another column."""

    card: str
    status: CardStatus
    reason: str
    by: Actor
    at: int | None = None
    """When it is scheduled for."""


class CardBlocked(Event, frozen=True):
    """It was blocked until a person unblocks it."""

    card: str
    block_kind: BlockKind
    reason: str
    by: Actor
    run: int = 0


class CardUnblocked(Event, frozen=True):
    """It was unblocked: it continues in the session of its last run, or in a new one."""

    card: str
    by: Actor
    fresh: bool = False
    reason: str = ""


class CardCompleted(Event, frozen=True):
    """It is done."""

    card: str
    summary: str
    by: Actor
    run: int = 0
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    artifacts: list[str] = msgspec.field(default_factory=list)


class RunStarted(Event, frozen=True):
    """A run began. Written together with the first input of its session, before its first step."""

    card: str
    run: int
    session: str
    task: str
    profile: str
    resumed_run: int
    """The run whose session it resumes; 0 is a new session."""
    after_turn: int
    """The turns of that session behind this one are the work of this run."""
    workspace: str
    workspace_state: str
    """How the workspace was found."""
    fresh_reason: str = ""
    """Why it did not resume, where it could have been expected to."""
    driver: str = "builtin"
    node: str = "local"
    """The machine on which its worker runs."""
    rights: Rights | None = None
    """What limits its worker besides its profile: that of the card."""


class RunAssigned(Event, frozen=True):
    """The board chose the node that is to start the next run; empty takes that back, since the node is away or does not
    fit any more.
    """

    card: str
    node: str


class RunReminded(Event, frozen=True):
    """Its worker ended its turn without reporting on the card, and was reminded."""

    card: str
    run: int


class RunHeartbeat(Event, frozen=True):
    """Its worker reported progress."""

    card: str
    run: int
    note: str


class RunFinished(Event, frozen=True):
    """How it ended. `uses_attempt` says whether it used up one of the card's attempts."""

    card: str
    run: int
    outcome: RunOutcome
    reason: str
    failure: Failure = ""
    uses_attempt: bool = False
    progress: bool = False
    """Whether its session has new results."""
    retry_at: int | None = None
    """A failure of the infrastructure: not before this time."""
    until_turn: int = 0
    unread_comments: list[str] = msgspec.field(default_factory=list)
    """Comments that came while it ran and that its worker did not read."""


class BoardCreated(Event, frozen=True):
    """A board was created. Its name is its id."""

    board: str
    title: str
    by: Actor


class BoardPaused(Event, frozen=True):
    """No card of the board is started until it is resumed; running cards continue."""

    board: str
    by: Actor


class BoardResumed(Event, frozen=True):
    """Cards are started again; one that was archived is back in the list."""

    board: str
    by: Actor


class BoardArchived(Event, frozen=True):
    """It was removed from the list; its cards stay."""

    board: str
    by: Actor


RunEvent = RunAssigned | RunStarted | RunReminded | RunHeartbeat | RunFinished
CardEvent = (
    CardCreated
    | CardEdited
    | CardCommented
    | CardLinked
    | CardUnlinked
    | CardFollowed
    | CardMoved
    | CardBlocked
    | CardUnblocked
    | CardCompleted
    | RunEvent
)
BoardEvent = BoardCreated | BoardPaused | BoardResumed | BoardArchived
