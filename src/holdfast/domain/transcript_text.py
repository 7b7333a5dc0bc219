"""The items of a transcript in words: one plain sentence for each notice, and how calls, turns and summaries ended.

Pure: a time is put into words by the caller (`clock`), who knows where the reader is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import msgspec

from holdfast.domain.chapter import INTERRUPTED
from holdfast.domain.events.chapter import (
    ChapterOpened,
    ChapterRejoined,
    ResetPolicy,
    ResetPolicySet,
    ResetPostponed,
    SummaryFailed,
    SummaryRequested,
    Survivor,
    ToolResultsTrimmed,
)
from holdfast.domain.events.parts import Forked
from holdfast.domain.events.session import (
    AgentChosen,
    FailureDismissed,
    InputRevised,
    RunBound,
    RunReleased,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    StopRequested,
    TurnBackgrounded,
    TurnResumed,
    TurnSuspended,
    TurnUndone,
)
from holdfast.domain.text import duration
from holdfast.domain.transcript_items import (
    ChapterItem,
    NoticeEvent,
    SummaryItem,
    ToolCallView,
    TurnEndItem,
    WaitAnswerView,
    WaitItem,
)

Clock = Callable[[int], str]
"""Puts a time into words."""
SHORT_ID = 8
DIGEST = "It was made by a rule, without a model; a summary replaces it as soon as one succeeds."


def notice_text(event: NoticeEvent, *, clock: Clock) -> str:
    """A sentence for an event that is a line of its own."""
    match event:
        case SessionCreated(origin=origin, by=by):
            if isinstance(origin, Forked):
                return f"Forked by {by} from session {origin.parent} at version {origin.version}."
            return f"Created by {by} in {event.cwd} with profile {event.profile}."
        case SessionRenamed(title=title, by=by):
            return f"Renamed to “{title}” by {by}."
        case SessionArchived(by=by):
            return f"Archived by {by}. A new message restores it."
        case SessionRestored(by=by):
            return f"Restored by {by}."
        case SessionPinned(pinned=pinned, by=by):
            return f"Pinned by {by}." if pinned else f"Unpinned by {by}."
        case AgentChosen(profile=profile, model=model, by=by):
            return f"{by} chose profile {profile}{f' with model {model}' if model else ''} from here on."
        case FailureDismissed(turn=turn, by=by):
            return f"The failure of turn {turn} was dismissed by {by}."
        case StopRequested(turn=turn, by=by):
            return f"{by} asked to stop turn {turn}."
        case TurnBackgrounded(turn=turn, task=task, by=by):
            return f"{by} made turn {turn} background task {task[:SHORT_ID]}. It goes on here."
        case TurnSuspended(turn=turn, reason=reason):
            return f"Turn {turn} was suspended: {_clause(reason)}. It resumes automatically."
        case TurnResumed(turn=turn, reason=reason):
            attempt = f", attempt {event.attempt}" if event.attempt else ""  # 0: it was shut down, no crash
            return f"Turn {turn} resumed after {duration(event.away_ms)}{attempt}: {_clause(reason)}."
        case TurnUndone(turn=turn, by=by):
            return f"Turn {turn} was undone by {by}: the model no longer sees it. Its effects stay."
        case RunBound(card=card, run=run):
            return (
                f"Run {run} of card {card} works here. Messages become comments on the card, and the worker reads them."
            )
        case RunReleased(card=card, run=run):
            return f"Run {run} of card {card} is over. Messages no longer reach the card."
        case ResetPolicySet(policy=policy, by=by):
            return f"{by} set when this session is reset: {policy_text(policy)}."
        case ResetPostponed():
            return postponed_text(event, clock=clock)
        case ChapterRejoined(chapter=chapter, by=by):
            return f"Chapter {chapter} was undone by {by}: the model sees the chapter before it again."
        case ToolResultsTrimmed():
            return _trimmed_text(event)
        case SummaryRequested(purpose="hand_over", by=by):
            return f"{by} asked for a reset. The agent writes a note for the next chapter first."
        case SummaryRequested(by=by, instructions=instructions):
            return f"{by} asked for a shorter context{f': {_clause(instructions)}' if instructions else ''}."
        case SummaryFailed(problem=problem, retry_at=retry_at):
            again = " It will be tried again." if retry_at is not None else ""
            return f"There is no note for the next chapter: {_clause(problem.message)}.{again}"
        case _ as never:
            assert_never(never)


def policy_text(policy: ResetPolicy) -> str:
    """The settings that a person chose for one session."""
    chosen = msgspec.to_builtins(policy)
    return ", ".join(f"{name} = {value}" for name, value in chosen.items()) or "as its profile says"


def postponed_text(event: ResetPostponed, *, clock: Clock) -> str:
    """Why a reset that was due did not happen."""
    limit = "" if event.until is None else f" until {clock(event.until)} at the latest"
    reasons = "; ".join(_clause(blocker.reason) for blocker in event.blockers)
    return f"The {event.rule} reset was due at {clock(event.due_at)} and is postponed{limit}: {reasons}."


def _trimmed_text(event: ToolResultsTrimmed) -> str:
    count = "1 tool result was" if event.results == 1 else f"{event.results} tool results were"
    done = "shortened" if event.keep else "replaced by notes"
    where = f"up to step {event.covers_step} of turn {event.covers_turn}"
    sizes = _sizes(event.tokens_before, event.tokens_after)
    return f"{count} {done} for the model, {where} ({sizes}): {_clause(event.reason)}."


# --- items ------------------------------------------------------------------------------------------


def call_detail(call: ToolCallView) -> str:
    """The exit code or the signal of its command, where that says something."""
    if call.state == "started":
        return ""
    return call.signal or (f"exit code {call.exit_code}" if call.exit_code else "")


def call_result(call: ToolCallView) -> str:
    """How a call ended: `failed, exit code 3`."""
    return ", ".join(filter(None, (call.state, call_detail(call))))


def revision_text(revision: InputRevised) -> str:
    """What was done to a message in the queue, and by whom."""
    done = [
        "reworded" if revision.text is not None else "",
        f"set to {revision.mode}" if revision.mode else "",
        f"moved to place {revision.place}" if revision.place is not None else "",
    ]
    return f"{' and '.join(filter(None, done))} by {revision.by}"


def wait_text(item: WaitItem, *, clock: Clock) -> str:
    """What a turn waits for."""
    match item.purpose:
        case "question":
            choices = f" ({', '.join(item.choices)})" if item.choices else ""
            return f"Turn {item.turn} waits for an answer: {item.reason}{choices}"
        case "approval":
            return f"Turn {item.turn} waits for a permission: {_clause(item.reason)}."
        case "retry":
            when = f" at {clock(item.until)}" if item.until is not None else ""
            return f"Turn {item.turn} tries again{when}: {_clause(item.reason)}."
        case "resume" | "compaction":
            return f"Turn {item.turn} waits for you: {_clause(item.reason)}."
        case _ as never:
            assert_never(never)


def answer_text(answer: WaitAnswerView) -> str:
    """The answer with its note: `deny (not there)`."""
    return f"{answer.answer} ({answer.note})" if answer.note else answer.answer


def turn_end_text(item: TurnEndItem) -> str:
    """How a turn ended, and what helps if it failed."""
    if item.outcome == "done":
        return f"Turn {item.turn} is done."
    hint = f" {item.problem.hint}" if item.problem is not None and item.problem.hint else ""
    reason = _clause(item.reason)
    if item.outcome == "failed":
        return f"Turn {item.turn} failed: {reason}.{hint}"
    stopped = reason if reason.startswith("stopped") else f"stopped: {reason}"
    return f"Turn {item.turn} was {stopped}.{hint}"


def chapter_lines(item: ChapterItem | ChapterOpened) -> list[str]:
    """What a reset kept and stopped, and its note for the next chapter; one line each."""
    lines = []
    if item.kept:
        lines.append("Kept: " + "; ".join(f"{_named(one)} ({_activity(one)})" for one in item.kept))
    if item.stopped:
        lines.append("Stopped: " + "; ".join(f"{_named(one)} ({one.rule})" for one in item.stopped))
    if item.hand_over:
        author = "Note of the agent" if item.hand_over_from == "model" else "Digest, made by a rule"
        lines.append(f"{author}: {item.hand_over}")
    return lines


def _named(one: Survivor) -> str:
    return f"{one.task[:SHORT_ID]} {one.title}"


def _activity(one: Survivor) -> str:
    return f"{one.activity or 'an agent'}, for {duration(one.age_ms)}"


def summary_text(item: SummaryItem, *, clock: Clock) -> str:
    """What became of a summary."""
    turns = covered_text(item.covers_turn, item.covers_step)
    match item.state:
        case "running":
            return f"{item.model} writes a summary of {turns}: {_clause(item.reason)}."
        case "done":
            what = "A summary" if item.source == "model" else "A digest"
            digest = "" if item.source == "model" else f" {DIGEST}"
            sizes = _sizes(item.tokens_before, item.tokens_after)
            return f"{what} replaces {turns} for the model ({sizes}): {_clause(item.reason)}.{digest}"
        case "failed":
            problem = item.problem.message if item.problem is not None else ""
            if item.problem is not None and item.problem.code == INTERRUPTED:
                return f"{_clause(problem)}. Nothing is lost."
            again = "after the next turn or on request" if item.retry_at is None else f"at {clock(item.retry_at)}"
            return f"No summary (attempt {item.attempt}): {_clause(problem)}. It will be tried again {again}."
        case _ as never:
            assert_never(never)


def covered_text(turn: int, step: int) -> str:
    """How far a summary reaches."""
    if not step:
        return f"the turns up to {turn}"
    before = f"the turns up to {turn - 1} and " if turn > 1 else ""
    return f"{before}the work in turn {turn} up to step {step}"


def _sizes(before: int, after: int) -> str:
    return f"{before:,} → {after:,} tokens"


def _clause(text: str) -> str:
    """A text as the end of a sentence: without its own full stop."""
    return text.strip().removesuffix(".")
