"""What can happen to a chapter: the span of a session that the model sees.

A reset opens the next chapter in the same session, a summary replaces its oldest turns.
Both move a cursor and delete nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from holdfast.domain.events.actor import Actor
from holdfast.domain.events.parts import Event, EventPart, Usage
from holdfast.domain.events.problem import Problem

ResetMode = Literal["none", "idle", "daily", "both"]
OnLiveProcess = Literal["hand_over", "stop_idle", "stop"]
ResetRule = Literal["person", "idle", "daily"]
BlockedBy = Literal["turn", "question", "queue", "process"]
NoteFrom = Literal["", "model", "digest"]
SummaryPurpose = Literal["compaction", "hand_over"]
"""To make the context shorter, or to inform the next chapter about the one before."""


class ResetPolicy(EventPart, frozen=True, omit_defaults=True):
    """When a session is reset; null leaves it to the profile, and then to `[session_reset]`."""

    mode: ResetMode | None = None
    idle_minutes: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    at_hour: Annotated[int, msgspec.Meta(ge=0, le=23)] | None = None
    timezone: str | None = None
    max_postpone: str | None = None
    process_max_age: str | None = None
    on_live_process: OnLiveProcess | None = None
    hand_over_note: bool | None = None
    notify: bool | None = None


class Blocker(EventPart, frozen=True):
    """What keeps a reset from happening, with the evidence."""

    by: BlockedBy
    reason: str
    task: str = ""
    pid: int | None = None
    command: str = ""
    age_ms: int | None = None
    activity: str = ""
    evidence: str = ""


class Survivor(EventPart, frozen=True):
    """A task that ran when a chapter was closed, and by which rule it was kept or stopped."""

    task: str
    title: str
    pid: int | None
    activity: str
    evidence: str
    age_ms: int
    rule: str


# --- said, by a person or by a rule -------------------------------------------------------------


class ResetPolicySet(Event, frozen=True):
    """A person chose when this session is reset, instead of what its profile says."""

    policy: ResetPolicy
    by: Actor


class ResetPostponed(Event, frozen=True):
    """A reset was due and did not happen. Written when the reason changes, not at every look."""

    rule: ResetRule
    due_at: int
    until: int | None
    """When it happens whatever these processes do; null while something waits that is never cut."""
    next_check: int
    blockers: list[Blocker]


class ChapterOpened(Event, frozen=True):
    """A reset: the model starts with an empty context. Earlier messages stay in the log and in the search."""

    chapter: int
    rule: ResetRule
    reason: str
    by: Actor
    due_at: int | None = None
    kept: list[Survivor] = msgspec.field(default_factory=list)
    stopped: list[Survivor] = msgspec.field(default_factory=list)
    hand_over: str = ""
    """What the agent wrote for itself, or what was put together without a model."""
    hand_over_from: NoteFrom = ""
    notify: bool = True


class ChapterRejoined(Event, frozen=True):
    """A reset was undone: the model sees the chapter before again, and what was said since."""

    chapter: int
    by: Actor
    since: int = 0
    """When the chapter before was opened; 0 for the first one."""


class SummaryRequested(Event, frozen=True):
    """A person wants a shorter context now; or a reset wants a note for the next chapter (`hand_over`)."""

    instructions: str
    by: Actor
    purpose: SummaryPurpose = "compaction"


# --- done, by the session's worker --------------------------------------------------------------


class ToolResultsTrimmed(Event, frozen=True):
    """From now on the model sees a short note in the place of the long tool results up to this step.

    They stay in the log, and the tool `recall` reads them.
    """

    covers_turn: int
    covers_step: int
    above: int
    """Results with more characters than this."""
    keep: int
    """How many characters of each are still visible, half at its beginning and half at its end."""
    results: int
    """How many became shorter by it."""
    tokens_before: int
    tokens_after: int
    reason: str


class SummaryStarted(Event, frozen=True):
    """A summary of everything up to this turn was asked for."""

    covers_turn: int
    attempt: int
    model: str
    tokens: int
    """About how large the context was."""
    reason: str
    purpose: SummaryPurpose = "compaction"
    covers_step: int = 0
    """Of that turn only the steps up to this one; 0 is all of it."""


class SummaryWritten(Event, frozen=True):
    """The model sees this in the place of all turns of the chapter up to `covers_turn`; of a turn that is covered in
    part it still sees the messages of the user word for word. A `hand_over` is seen by the next chapter instead.
    """

    covers_turn: int
    summary: str
    source: Literal["model", "digest"]
    """A digest is put together without a model; it is replaced when a summary succeeds."""
    model: str
    tokens_before: int
    tokens_after: int
    reason: str
    usage: Usage = msgspec.field(default_factory=Usage)
    duration_ms: int = 0
    purpose: SummaryPurpose = "compaction"
    covers_step: int = 0
    """Of that turn only the steps up to this one; 0 is all of it."""
    left_out: int = 0
    """How many messages did not fit into the request for the summary: its writer saw a digest of them."""


class SummaryFailed(Event, frozen=True):
    """There is no summary; nothing is lost, the model sees what it saw before."""

    covers_turn: int
    attempt: int
    problem: Problem
    retry_at: int | None
    """When it is retried automatically; null when the next turn or a person has to ask for it."""
    purpose: SummaryPurpose = "compaction"
    covers_step: int = 0
    """Of that turn only the steps up to this one; 0 is all of it."""


SummaryEvent = SummaryRequested | SummaryStarted | SummaryWritten | SummaryFailed
ChapterEvent = ResetPolicySet | ResetPostponed | ChapterOpened | ChapterRejoined | ToolResultsTrimmed | SummaryEvent
