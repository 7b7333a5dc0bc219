"""Chapters: the span of a session that the model sees, folded from its events; and the notes about them for the model.

A reset opens the next chapter in the same session, compaction puts a summary in the place of its oldest turns.
Both move a cursor and delete nothing. Rules: `reset.py`, `compaction.py`.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec.structs import replace

from holdfast.domain.events.chapter import (
    ChapterOpened,
    SummaryEvent,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
    Survivor,
    ToolResultsTrimmed,
)
from holdfast.domain.events.parts import EventRef
from holdfast.domain.events.problem import ProblemCode
from holdfast.domain.history import WHOLE_TURN, Position

INTERRUPTED: ProblemCode = "interrupted"
"""The code of a summary that a message, a stop or a shutdown interrupted. It does not count as a failure."""
HELPED = 0.8
"""A summary that leaves more than this part of the context counts as ineffective."""


def chapter_note(event: ChapterOpened) -> str:
    """Return the note at the beginning of a new chapter."""
    lines = [
        f"A new chapter of this session begins: {event.reason}. Earlier messages are not in your context; "
        "the tool `recall` searches them."
    ]
    if event.kept:
        lines.append("Still running in the background, handed over to you:")
        lines += [f"- {_line(one)}" for one in event.kept]
    if event.stopped:
        lines.append("Stopped with the old chapter:")
        lines += [f"- {_line(one)} ({one.rule})" for one in event.stopped]
    if event.hand_over:
        whose = "You left yourself this note" if event.hand_over_from == "model" else "A digest of it, made by a rule"
        lines.append(f"{whose}:\n{event.hand_over}")
    return "\n".join(lines)


def _line(one: Survivor) -> str:
    pid = "" if one.pid is None else f", pid {one.pid}"
    return f"{one.task} {one.title}{pid}{', ' + one.activity if one.activity else ''}"


def summary_note(event: SummaryWritten) -> str:
    """Return the note that replaces the turns which a summary covers."""
    how = "A summary" if event.source == "model" else "A digest, put together by a rule and not by a model,"
    covered = f"of turns up to {event.covers_turn}, which are"
    if event.covers_step:
        before = f"of turns up to {event.covers_turn - 1} and " if event.covers_turn > 1 else ""
        covered = f"{before}of your work in turn {event.covers_turn} up to step {event.covers_step}, which is"
    return f"{how} {covered} no longer in your context (the tool `recall` searches it):\n{event.summary}"


# --- the fold -----------------------------------------------------------------------------------


class Chapter(msgspec.Struct, frozen=True, gc=False):
    """One chapter: where the model's context begins, and how far it was made shorter."""

    number: int = 1
    after_turn: int = 0
    opened: ChapterOpened | None = None
    """None for the first chapter, which no reset opened."""
    opened_at: EventRef | None = None
    summary: SummaryWritten | None = None
    summary_at: EventRef | None = None
    requested: SummaryRequested | None = None
    in_progress: SummaryStarted | None = None
    failed: SummaryFailed | None = None
    last: EventRef | None = None
    """The last event of a compaction."""
    failures: int = 0
    """Failed summaries in a row."""
    ineffective: int = 0
    """Summaries in a row that did not make the context small enough."""
    use_digest: bool = False
    """A person chose the digest rather than another try, until the model has answered."""
    trims: tuple[ToolResultsTrimmed, ...] = ()
    """The trims of tool results that no summary covers yet."""
    trimmed_at: EventRef | None = None
    hand_over: SummaryWritten | None = None
    """The note for the next chapter; None once a later turn has made it out of date."""
    hand_over_failures: int = 0

    @property
    def start(self) -> int:
        """The last turn that the model does not see as a whole."""
        return self.after_turn if self.summary is None else max(self.after_turn, self.summary.covers_turn)

    @property
    def covered(self) -> Position:
        """Where the model's context begins; the inputs of a partly covered turn are kept besides."""
        summary = self.summary
        if summary is None or summary.covers_turn <= self.after_turn:
            return (self.after_turn, WHOLE_TURN)
        return (summary.covers_turn, summary.covers_step or WHOLE_TURN)

    @property
    def hand_over_requested(self) -> bool:
        """Whether a reset waits for the note to the next chapter."""
        return self.requested is not None and self.requested.purpose == "hand_over"

    @property
    def provisional(self) -> bool:
        """Whether a digest is in use because no summary has succeeded."""
        return self.summary is not None and self.summary.source == "digest"


def compaction_after(event: SummaryEvent, *, requested: bool, running: bool) -> tuple[bool, bool]:
    """Return whether a summary is still requested after an event, and whether it is being written."""
    match event:
        case SummaryRequested():
            return True, running
        case SummaryStarted():
            return requested, True
        case SummaryFailed(purpose="hand_over"):
            return requested and event.retry_at is not None, False
        case SummaryFailed(problem=problem):
            return requested and problem.code == INTERRUPTED, False
        case SummaryWritten(source=source):
            return requested and source == "digest", False
        case _ as never:
            assert_never(never)


def evolve_compaction(chapter: Chapter, event: SummaryEvent | ToolResultsTrimmed, at: EventRef) -> Chapter:
    """Return the chapter after one event of a compaction."""
    if isinstance(event, ToolResultsTrimmed):
        return replace(chapter, trims=(*chapter.trims, event), trimmed_at=at)
    requested, running = compaction_after(
        event, requested=chapter.requested is not None, running=chapter.in_progress is not None
    )
    chapter = replace(
        chapter,
        last=at,
        requested=chapter.requested if requested else None,
        in_progress=chapter.in_progress if running else None,
    )
    if event.purpose == "hand_over":
        return _evolve_hand_over(chapter, event)
    match event:
        case SummaryRequested():
            return replace(chapter, requested=event, failed=None, ineffective=0)
        case SummaryStarted():
            return replace(chapter, in_progress=event)
        case SummaryFailed():
            if event.problem.code == INTERRUPTED:
                return replace(chapter, failed=None)
            return replace(chapter, failed=event, failures=chapter.failures + 1)
        case SummaryWritten():
            if event.source == "model":
                ineffective = chapter.ineffective
                if not chapter.provisional:
                    helped = event.tokens_after <= HELPED * event.tokens_before
                    ineffective = 0 if helped else ineffective + 1
                chapter = replace(chapter, failures=0, ineffective=ineffective)
            chapter = replace(chapter, failed=None, summary=event, summary_at=at)
            uncovered = tuple(one for one in chapter.trims if (one.covers_turn, one.covers_step) > chapter.covered)
            return replace(chapter, trims=uncovered)
        case _ as never:
            assert_never(never)


def _evolve_hand_over(chapter: Chapter, event: SummaryEvent) -> Chapter:
    """Return the chapter after an event about the note for the next one."""
    match event:
        case SummaryRequested():
            return replace(chapter, requested=event, hand_over=None, hand_over_failures=0)
        case SummaryStarted():
            return replace(chapter, in_progress=event)
        case SummaryFailed():
            cut = event.problem.code == INTERRUPTED
            return chapter if cut else replace(chapter, hand_over_failures=chapter.hand_over_failures + 1)
        case SummaryWritten():
            return replace(chapter, hand_over=event)
        case _ as never:
            assert_never(never)
