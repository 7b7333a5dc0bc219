"""A session as the rules know it: an immutable snapshot, made by folding its events (`session_fold.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from holdfast.domain.card_number import card_label
from holdfast.domain.chapter import Chapter, chapter_note, summary_note
from holdfast.domain.command import SessionMode
from holdfast.domain.events.actor import Actor, is_person
from holdfast.domain.events.chapter import ResetPolicy, ResetPostponed, ToolResultsTrimmed
from holdfast.domain.events.external_agent import AgentAttached, AgentPlanned, DriverOutputRead, SessionAdopted
from holdfast.domain.events.parts import Call, EventRef, NotifyChoice, Rights
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import Effect, NoteReceived, Outcome, StopRequested, WaitAnswered, WaitOpened
from holdfast.domain.history import (
    WHOLE_TURN,
    History,
    Message,
    Note,
    Position,
    StatePart,
    ToolResult,
    UserMessage,
    position,
    trimmed,
)
from holdfast.domain.queue import Queue
from holdfast.domain.rights import NO_LIMITS, mode_in_force

OpenTurnState = Literal["running", "waiting", "suspended"]
TurnState = OpenTurnState | Outcome
SessionActivity = OpenTurnState | Literal["idle", "queued", "compacting"]


def session_activity(turn: TurnState | None, *, queued: bool, compacting: bool) -> SessionActivity:
    """Return what a session is doing; `turn` is the state of its latest turn."""
    match turn:
        case "running" | "waiting" | "suspended":
            return turn
        case _:
            return "queued" if queued else "compacting" if compacting else "idle"


def is_person_active(by: Actor, *, begun: bool) -> bool:
    """Whether an act counts as activity and so postpones a reset: a person must have done it, in a chapter that has a
    message.
    """
    return begun and is_person(by)


# --- the turn -----------------------------------------------------------------------------------


class OpenCall(StatePart, frozen=True):
    """A tool call of the current step that has no outcome yet."""

    call: Call
    effect: Effect | None = None
    started: int | None = None
    """The effect class, once the intent was written, and when that was; None while it has not been started."""


class Turn(StatePart, frozen=True):
    """The open turn."""

    number: int
    started: EventRef
    last_done: EventRef
    """The last event that was progress of it: what its worker wrote, or the answer to its wait."""
    last_kind: str
    """The name of that event."""
    step: int = 0
    asked: bool = False
    """A model request of this step is open: no answer and no failure yet."""
    attempts: int = 0
    """How often the model was asked in this step."""
    answered: bool = False
    """The current step has an answer; its calls are done or in `open_calls`."""
    yielded: bool = False
    """The answer had no tool calls: the turn is over unless an input joins it."""
    model: str = ""
    open_calls: Mapping[str, OpenCall] = MappingProxyType({})
    failed: Problem | None = None
    stop: StopRequested | None = None
    stop_asked: EventRef | None = None
    suspended: str = ""
    wait: WaitOpened | None = None
    waits: int = 0
    quota_waits: int = 0
    """How many of them were for a quota."""
    kept_waiting: WaitOpened | None = None
    """A wait whose countdown a person has cancelled; it is opened again without one."""
    answers: Mapping[str, WaitAnswered] = MappingProxyType({})
    """The answers to the waits of this turn that belong to a call, by call."""
    tokens: int = 0
    stood_still_ms: int = 0
    """How long no worker worked on it: it waited for a person, or no gateway was running."""
    resumes: int = 0
    """Crashes in a row without progress in between; a clean shutdown does not count."""
    nodes_lost: int = 0
    """Nodes that were lost in a row while they worked on it, without progress in between."""
    interruptions: tuple[tuple[int, int, int, str], ...] = ()
    """Every resume of this turn: version, time, milliseconds without a worker, and the reason."""
    task: str = ""
    """The task of its session, or its own since it was moved into the background; empty for none."""
    files: tuple[str, ...] = ()
    """The files that its tools changed, as far as they know."""
    said: str = ""
    """The agent's last text."""
    by_person: bool = True
    """Whether a person asked for it, and not only the end of a task."""
    released: int = 0
    """The step in which the run of a card ended; only a closing message may follow it."""


class LastTurn(StatePart, frozen=True):
    """The most recent turn that ended."""

    number: int
    outcome: str
    reason: str
    problem: Problem | None
    ended: EventRef
    dismissed: bool = False
    """A person has seen that it failed."""


class Session(StatePart, frozen=True):
    """The state of a session at one version."""

    id: str
    version: int = 0
    updated_at: int = 0
    title: str = ""
    profile: str = ""
    cwd: str = ""
    driver: str = "builtin"
    """The name of the driver that runs its turns."""
    model: str = ""
    """Chosen in this session instead of the profile's own."""
    allowed: frozenset[str] = frozenset()
    """The patterns that a person allowed for this session."""
    allowed_calls: frozenset[str] = frozenset()
    """The digests of the calls that a person allowed for this session."""
    rights: Rights = NO_LIMITS
    """Limits besides its profile, inherited from the agents that it descends from."""
    node: str = ""
    """The name or label of the nodes on which it may run; empty is any."""
    home: str = ""
    """The node that has its directory, as far as its first event says that; else the one that took it has."""
    mode: SessionMode = "profile"
    """The mode that a person chose here; `mode_in_force` is the strictest of it and those that were inherited."""
    mode_chosen_at: EventRef | None = None
    """The event that set the mode; None for the default."""
    limited_at: EventRef | None = None
    """The event that limited it last."""
    answered: Mapping[str, WaitAnswered] = MappingProxyType({})
    """Every answer by its wait, so that a second answer is refused with the name of the first."""
    undone: frozenset[int] = frozenset()
    archived_at: EventRef | None = None
    """The event that archived it; None while it is not archived."""
    pinned: bool = False
    tell: NotifyChoice = "default"
    messages: History = msgspec.field(default_factory=History)
    """The messages of all turns that were not undone; the model sees `visible_messages()`."""
    chapters: tuple[Chapter, ...] = (Chapter(),)
    """The first chapter, and those of resets that were not undone."""
    visible: History | None = None
    """The messages that the model sees; None while it sees all of them."""
    counted_tokens: int = 0
    counted: int = 0
    """The provider's last count, and how many of the messages that the model sees are in it."""
    fixed_tokens: int = 0
    """About how many tokens the instructions and tools of its last request were."""
    refused_tokens: int = 0
    """The smallest size that its model refused as too long; 0 when it refused none."""
    refused_by: str = ""
    """The model that refused it."""
    first_input: EventRef | None = None
    """The first input of a person in this chapter; None while there is none."""
    last_active: EventRef | None = None
    """A person's last act, or the end of the last turn that a person asked for."""
    policy: ResetPolicy = ResetPolicy()
    postponed: tuple[ResetPostponed, EventRef] | None = None
    queue: Queue = ()
    notes: tuple[NoteReceived, ...] = ()
    """Notes that the model reads at the beginning of the next turn."""
    task: str = ""
    """The agent task whose work this session is."""
    card: str = ""
    card_number: int = 0
    run: int = 0
    """The card whose worker works in this session, and its run; 0 when there is none."""
    must_remember: bool = False
    """Whether its external agent must remember what the run before did."""
    attached: AgentAttached | None = None
    """The last process of its external agent; whether it still runs is known by its task."""
    adopted: SessionAdopted | None = None
    """The session of an external agent that this one continues."""
    plan: AgentPlanned | None = None
    """The plan of its external agent for the latest turn."""
    output_read: DriverOutputRead | None = None
    """How far the output of an external agent was read, and which of its requests are open."""
    workspace_of: str = ""
    """The card in whose workspace it works: its own card, or that of the session it was forked from."""
    turns: int = 0
    turn: Turn | None = None
    last_turn: LastTurn | None = None

    @property
    def card_label(self) -> str:
        """How people name that card."""
        return card_label(self.card_number, self.card)

    @property
    def mode_in_force(self) -> SessionMode:
        """What its agent may do at most, besides what its profile allows."""
        return mode_in_force(self.mode, self.rights)

    @property
    def exists(self) -> bool:
        """Whether it was created."""
        return self.version > 0

    @property
    def archived(self) -> bool:
        """Whether it is out of the default list."""
        return self.archived_at is not None

    def open_call(self, call: str) -> OpenCall | None:
        """Return a tool call of the current step that has no outcome yet."""
        return self.turn.open_calls.get(call) if self.turn is not None else None

    @property
    def chapter(self) -> Chapter:
        """The open chapter."""
        return self.chapters[-1]

    @property
    def size(self) -> int:
        """About how many tokens the next request has: what the provider counted last, and an estimate of the rest.

        A count below half of the estimate is ignored: some servers report only what was not in their cache.
        """
        seen = self.visible_history
        return max(self.counted_tokens + seen.tokens(self.counted), seen.tokens() // 2)

    @property
    def visible_history(self) -> History:
        """The messages that the model sees, as a history."""
        return self.messages if self.visible is None else self.visible

    def preamble(self) -> list[Message]:
        """Return the notes that replace what the model does not see."""
        chapter = self.chapter
        found = [] if chapter.opened is None else [chapter_note(chapter.opened)]
        if chapter.summary is not None:
            found.append(summary_note(chapter.summary))
        return [Note(0, text) for text in found]

    def visible_messages(self) -> list[Message]:
        """Return a copy of the messages that the model sees."""
        return self.visible_history[:]

    def assignment(self, end: Position) -> list[Message]:
        """Return the inputs of a turn whose steps up to this one are covered: they are kept word for word."""
        turn, step = end
        if step == WHOLE_TURN:
            return []
        start = self.messages.index_after((turn - 1, WHOLE_TURN))
        steps = self.messages[start : self.messages.index_after(end)]
        return [message for message in steps if message.step == 0 or isinstance(message, UserMessage)]

    def compute_visible(self) -> History:
        """Compute what the model sees: notes for what is covered, then the other messages, trimmed."""
        chapter = self.chapter
        rest = self.messages[self.messages.index_after(chapter.covered) :]
        messages = [*self.preamble(), *self.assignment(chapter.covered), *rest]
        for trim in chapter.trims:
            messages = trim_results(messages, trim)
        return History(messages)

    @property
    def activity(self) -> SessionActivity:
        """What the session is doing."""
        turn, chapter = self.turn, self.chapter
        state: TurnState | None = None
        if turn is not None:
            state = "waiting" if turn.wait is not None else "suspended" if turn.suspended else "running"
        compacting = chapter.in_progress is not None or chapter.requested is not None
        return session_activity(state, queued=bool(self.queue), compacting=compacting)


def trim_results(messages: list[Message], trim: ToolResultsTrimmed) -> list[Message]:
    """Return the messages with a note in the place of each result that this trim covers."""
    end = (trim.covers_turn, trim.covers_step)
    return [
        trimmed(message, above=trim.above, keep=trim.keep)
        if isinstance(message, ToolResult) and position(message) <= end
        else message
        for message in messages
    ]
