"""The rows of the projections as typed, immutable structs (`sqlite/fetch.py` makes them of what SQL returns).

The fields of `SessionRow`, `TurnRow`, `WaitRow`, `TaskRow`, `CardRow` and `RunRow` (and of `Board` in the domain) are
the columns of a table; a default is the value that a new row has. The types after them are what single queries return.
The database checks the values of Literals (CHECK in `schema.sql`), so the decoder does not check them again.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from holdfast.domain.card import Board
from holdfast.domain.card_number import card_label
from holdfast.domain.events.card import BlockKind, CardStatus, RunOutcome
from holdfast.domain.events.chapter import ResetPolicy
from holdfast.domain.events.parts import NotifyChoice, ShownArgument
from holdfast.domain.events.problem import Failure
from holdfast.domain.events.session import Purpose
from holdfast.domain.events.task import Lifetime, TaskKind, TaskOutcome, TaskState
from holdfast.domain.session import SessionActivity, TurnState, session_activity

WaitState = Literal["open", "answered", "closed"]
RunState = Literal["running"] | RunOutcome
R = TypeVar("R", bound=msgspec.Struct)


class SessionRow(msgspec.Struct, frozen=True, gc=False):
    """A session."""

    id: str
    title: str
    profile: str
    cwd: str
    created_at: int
    updated_at: int
    version: int
    model: str = ""
    parent: str = ""
    """The session that it is a fork of."""
    task: str = ""
    """The agent task whose work it is."""
    archived: bool = False
    pinned: bool = False
    message_count: int = 0
    queued: int = 0
    turn: int = 0
    """Its latest turn; 0 before the first."""
    turn_state: TurnState | None = None
    failed_turn: int = 0
    """Its latest turn if that failed and no person has dealt with it, else 0."""
    preview: str = ""
    chapter: int = 1
    chapter_at: int = 0
    first_input_at: int = 0
    """When a person first said something in this chapter; 0 while it is empty."""
    last_active_at: int = 0
    """A person's last act, or the end of the last turn that a person asked for; 0 in an empty chapter."""
    person_turn: int = 0
    """The latest turn that a person asked for."""
    compaction_requested: bool = False
    compaction_running: bool = False
    reset_policy: ResetPolicy = ResetPolicy()
    ancestors: list[str] = []
    """The sessions that it descends from, the first one first."""
    node: str = "local"
    """The machine on which its agent works."""
    chat: str = ""
    """The chat of another service in which it is held."""
    tell: NotifyChoice = "default"

    @property
    def state(self) -> SessionActivity:
        """One word for what it is doing."""
        compacting = self.compaction_requested or self.compaction_running
        return session_activity(self.turn_state, queued=self.queued > 0, compacting=compacting)


class TurnRow(msgspec.Struct, frozen=True, gc=False):
    """A turn of a session."""

    session: str
    turn: int
    state: TurnState
    started_at: int
    finished_at: int | None = None
    steps: int = 0
    resumes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    reason: str = ""


class WaitRow(msgspec.Struct, frozen=True, gc=False):
    """Something that a turn waits for."""

    id: str
    session: str
    turn: int
    version: int
    purpose: Purpose
    reason: str
    call: str
    choices: list[str]
    pattern: str
    opened_at: int
    until: int | None = None
    state: WaitState = "open"
    answer: str | None = None
    answered_by: str | None = None
    ended_at: int | None = None
    shown: list[ShownArgument] = []
    """Every argument of a call that waits for an approval."""


class CardOfSession(msgspec.Struct, frozen=True, gc=False):
    """The card that a session works on."""

    session: str
    card: str
    number: int
    board: str
    """The title of its board, or its name."""


class TaskRow(msgspec.Struct, frozen=True, gc=False):
    """A task. What cannot be known is None."""

    id: str
    kind: TaskKind
    title: str
    command: str
    argv: list[str]
    cwd: str
    started_by: str
    session: str
    call: str
    worker: str
    foreground: bool
    lifetime: Lifetime
    until: int | None
    notify: bool
    started_at: int
    version: int
    state: TaskState = "running"
    finished_at: int | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: str = ""
    reason: str = ""
    evidence: str = ""
    stop_by: str = ""
    stop_reason: str = ""
    output_bytes: int = 0
    dropped_bytes: int = 0
    preview: str = ""
    summary: str = ""
    files: list[str] | None = None
    survivors: list[str] = []
    pinned: bool = False
    left_by: str = ""
    """The task whose command ended and left these processes behind."""
    node: str = "local"
    """The machine on which it runs."""
    tell: NotifyChoice = "default"

    @property
    def is_turn(self) -> bool:
        """Whether it is a turn of somebody's session, which was moved to the background."""
        return self.kind == "agent" and self.worker != self.id


class CardRow(msgspec.Struct, frozen=True, gc=False):
    """A card, as much as a board shows of it."""

    id: str
    board: str
    title: str
    profile: str
    workspace: str
    priority: int
    status: CardStatus
    created_by: str
    created_at: int
    moved_at: int
    updated_at: int
    version: int
    done: bool = False
    """Also once it is archived: no card waits for it."""
    reason: str = ""
    block_kind: BlockKind | Literal[""] = ""
    scheduled_at: int | None = None
    retry_at: int | None = None
    run: int = 0
    session: str = ""
    comments: int = 0
    warning: str = ""
    """Why its worker started in a new session, although there was one to resume."""
    root: str = ""
    """The session of a person from which the agent that created it descends."""
    number: int = 0
    tell: NotifyChoice = "default"
    node: str = ""
    """The name or label of the nodes on which it may run; empty is any."""
    assigned: str = ""
    """The node that is to start its next run; empty if none was chosen."""
    host: str = ""
    """The node of its last run."""

    @property
    def label(self) -> str:
        """How people name it: `HF-118`."""
        return card_label(self.number, self.id)


class RunRow(msgspec.Struct, frozen=True, gc=False):
    """One attempt at a card."""

    card: str
    run: int
    session: str
    task: str
    profile: str
    resumes: int
    """The run whose session it resumes; 0 is a new session."""
    fresh_because: str
    workspace: str
    after_turn: int
    started_at: int
    until_turn: int | None = None
    outcome: RunState = "running"
    failure: Failure = ""
    reason: str = ""
    counts: bool = False
    """It used up one of the attempts of its card."""
    note: str = ""
    finished_at: int | None = None
    node: str = "local"
    """The machine on which its worker runs."""


class AnswerRow(msgspec.Struct, frozen=True, gc=False):
    """The position of a finished text of the agent."""

    session: str
    version: int
    at: int


Row = SessionRow | TurnRow | WaitRow | AnswerRow | TaskRow | Board | CardRow | RunRow
"""A row that is made of events (`projection.py`)."""


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """A life of a node: a process that has the store open, from its start to its end."""

    life: int
    name: str
    url: str
    """Where others reach it; empty when there are no others."""
    version: str
    expires_at: int | None = None
    """When the life ends unless it is renewed; None where no other node could take over."""
    ended_at: int | None = None
    ended_reason: str = ""
    started_at: int = 0
    heard_at: int = 0
    """When it last renewed its life; 0 where there are no others."""
    draining: bool = False
    """Whether it hands over what it works on, and takes nothing new."""
    labels: str = ""  # with commas between them
    silent_ms: int = 0
    """For how long it has given no sign of life, by the clock of the store; 0 where there are no others."""

    @property
    def label_list(self) -> list[str]:
        """Its labels."""
        return [label for label in self.labels.split(",") if label]


class NodeWork(msgspec.Struct, frozen=True, gc=False):
    """A session that is not at rest, or a duty, and the node that has it."""

    node: str
    stream: str
    title: str

    @property
    def is_session(self) -> bool:
        """Whether it is a session, and no duty."""
        return self.stream.startswith("session/")


# --- what single queries return -----------------------------------------------------------------


class TitledWait(WaitRow, frozen=True, gc=False):
    """A wait with the title of its session."""

    title: str = ""


class OpenRun(RunRow, frozen=True, gc=False):
    """A run that is not over, with the board of its card."""

    board: str = ""


class RunWithCost(RunRow, frozen=True, gc=False):
    """A run with what its turns cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


class FailedTurn(msgspec.Struct, frozen=True, gc=False):
    """The failed turn of a session that no person has dealt with; `version` is that of the session."""

    session: str
    title: str
    version: int
    turn: int
    reason: str
    finished_at: int


class ResettableSession(msgspec.Struct, frozen=True, gc=False):
    """What decides whether a session is reset."""

    id: str
    profile: str
    reset_policy: ResetPolicy
    first_input_at: int
    last_active_at: int


class EndedTask(msgspec.Struct, frozen=True, gc=False):
    """What decides whether a task is pruned, and what is written of the prune."""

    id: str
    title: str
    state: TaskOutcome
    version: int
    finished_at: int
    output_bytes: int
    dropped_bytes: int


class StartableCard(msgspec.Struct, frozen=True, gc=False):
    """A card that may be started."""

    id: str
    board: str
    profile: str


class AssignedCard(StartableCard, frozen=True, gc=False):
    """A card that a node is to start."""

    node: str


class StoreCounts(msgspec.Struct, frozen=True, gc=False):
    """How much is stored."""

    sessions: int
    archived: int
    """Of the sessions."""
    messages: int
    events: int
    seq: int
    """Where the log ends; larger than the number of events once something was deleted."""


class TextPiece(msgspec.Struct, frozen=True, gc=False):
    """A piece of the text so far of a running step, with the version of its session then."""

    stream: str
    version: int
    number: int | None = None
    """None: the turn runs, and nothing was said yet."""
    turn: int = 0
    step: int = 0
    text: str = ""
    thinking: str = ""
    at: int = 0


class PartialText(msgspec.Struct, frozen=True, gc=False):
    """The text so far of a running step."""

    turn: int
    step: int
    text: str
    thinking: str
    at: int
    """When it was saved."""
