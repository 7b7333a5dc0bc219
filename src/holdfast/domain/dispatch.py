"""The rules of the dispatcher: which cards start, in which session, with which input, and what an end means. Pure.

not_startable_reason  →  why a card is not started; empty if it can be
choose_session        →  the session that the next run continues, or a new one
first_input           →  what the worker reads first
run_verdict           →  what the end of a turn means for the card
advice                →  what a person can do about a card that needs one
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, assert_never

from holdfast.domain.card import Card, Comment, Run, block_words
from holdfast.domain.events.card import BlockKind, ResumePolicy, RunFinished
from holdfast.domain.events.problem import HANDLING, Failure, Problem
from holdfast.domain.text import duration

COOL_FIRST_MS, COOL_MOST_MS, COOL_TIMES = 60_000, 3_600_000, 10
RUNS_LISTED = 5
"""How many earlier runs a new worker reads about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConditions:
    """What decides, besides the card itself, whether it is started."""

    paused_by: str = ""
    board_gone: bool = False
    profiles: frozenset[str] = frozenset()
    waits_for: list[str] = field(default_factory=list)
    """Its parents that are not done, each with its title and status."""
    running: int = 0
    max_running: int = 4
    on_board: int = 0
    max_per_board: int = 0
    with_profile: int = 0
    max_per_profile: int = 0
    policy: ResumePolicy = "auto"
    """The effective policy: the card's own, else its profile's, else that of the settings."""
    refused: str = ""
    """Why the policy `resume` would block it again; empty if it would not."""
    previous_worker: str = ""
    """The processes of an earlier worker that still run; empty if there are none."""
    waits_for_node: str = ""
    """For which node it waits, as a sentence; empty if one can take it."""


def not_startable_reason(card: Card, conditions: StartConditions, *, now: int) -> str:
    """Return why a card is not started; empty when it can be."""
    match card.status:
        case "triage":
            return f"It is in triage. Promote it with `holdfast card promote {card.label}`."
        case "scheduled":
            return f"It is scheduled: it becomes ready in {duration((card.scheduled_at or now) - now)}."
        case "blocked":
            kind = block_words(card.block.block_kind if card.block is not None else "needs_input")
            end = "" if card.reason.endswith((".", "!", "?")) else "."
            then = what_unblocking_does(card.label, conditions.policy, refused=conditions.refused)
            if conditions.refused and conditions.refused in card.reason:  # the reason says it already
                then = then[then.index("`holdfast") :]
            return f"It is blocked ({kind}): {card.reason}{end} {then}"
        case "review":
            return f"It is in review: finish it with `holdfast card complete {card.label}`, or use `retry`."
        case "running" | "done" | "archived":
            return f"It is {card.status}."
        case _:
            pass
    if conditions.waits_for:
        return f"It waits for {', '.join(conditions.waits_for)}."
    if conditions.board_gone:
        return f"Its board {card.board} is archived (`holdfast board resume {card.board}`)."
    if conditions.paused_by:
        return f"Its board {card.board} is paused by {conditions.paused_by} (`holdfast board resume {card.board}`)."
    if not card.profile:
        return f"It has no profile (`holdfast card assign {card.label} PROFILE`)."
    if card.profile not in conditions.profiles:
        known = ", ".join(sorted(conditions.profiles))
        return f"There is no profile {card.profile!r}; there is: {known}."
    if card.again_at is not None and card.moved.at <= now < card.again_at:  # a clock set back does not prolong it
        last = card.runs[-1].finished if card.runs else None
        failed = card.reason if last is None else last.reason
        return f"It is tried again in {duration(card.again_at - now)}, after: {failed.rstrip('.')}."
    if conditions.previous_worker:
        return f"Its previous worker is still running: {conditions.previous_worker}."
    if conditions.waits_for_node:
        return conditions.waits_for_node
    return _limit_reached(card, conditions)


def _limit_reached(card: Card, conditions: StartConditions) -> str:
    if conditions.running >= conditions.max_running:
        return f"{_running(conditions.running)}, which is the limit (max_running = {conditions.max_running})."
    if conditions.max_per_board and conditions.on_board >= conditions.max_per_board:
        return f"{_running(conditions.on_board, ' of its board')}, which is the limit (max_per_board)."
    if conditions.max_per_profile and conditions.with_profile >= conditions.max_per_profile:
        running = _running(conditions.with_profile, f" with profile {card.profile}")
        return f"{running}, which is the limit (max_per_profile)."
    return ""


def _running(count: int, which: str = "") -> str:
    return f"1 card{which} is running" if count == 1 else f"{count} cards{which} are running"


# --- whose session ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """The session that the next run continues, or why it begins a new one."""

    resumes: Run | None = None
    fresh_because: str = ""
    """Why it begins a new session although there is one to resume; shown as a warning on the card."""
    refused: str = ""
    """Why it cannot resume although the policy is `resume`."""
    asked_fresh: bool = False
    """Whether a new session was asked for, so that there is no warning."""


def choose_session(card: Card, policy: ResumePolicy, *, missing: str = "") -> SessionChoice:
    """Return the session of the most recent run with progress, unless there is a reason against it.

    `missing` says why that session cannot be used, if it cannot.
    """
    last = resumable(card)
    if card.fresh_next:
        return SessionChoice(asked_fresh=last is not None)
    if policy == "fresh" or not card.runs:
        return SessionChoice()
    if last is None:  # there is no session to continue, whatever the policy is
        return SessionChoice(fresh_because="no earlier run made progress")
    reason = missing or _reason_not_to_resume(card, last)
    if not reason:
        return SessionChoice(resumes=last)
    return SessionChoice(refused=reason) if policy == "resume" else SessionChoice(fresh_because=reason)


def resumable(card: Card) -> Run | None:
    """Return the most recent run with progress; runs that failed at once are skipped."""
    return next((run for run in reversed(card.runs) if run.finished is not None and run.finished.progress), None)


RESUMABLE_FAILURES = frozenset({"", "network", "quota"})
"""Failures that are no reason against resuming the session."""


def _reason_not_to_resume(card: Card, last: Run) -> str:
    if last.started.profile != card.profile:
        return f"run {last.number} had the profile {last.started.profile}, and now it is {card.profile}"
    recent = [run for run in card.runs[-2:] if run.started.resumed_run and run.finished is not None]
    ends = {(run.finished.failure, run.finished.progress) for run in recent if run.finished is not None}
    if len(recent) == 2 and len(ends) == 1 and (end := ends.pop())[0] not in RESUMABLE_FAILURES and not end[1]:
        return f"two runs in a row resumed it and ended the same way ({end[0]}) without progress"
    return ""


# --- inputs of workers --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FirstInput:
    """The first input of a run: a note from the board, and the user message."""

    note: str
    text: str


def first_input(card: Card, choice: SessionChoice, *, found: str, hand_over: str, now: int) -> FirstInput:
    """Return the input of a run's first turn. Text of the board is in brackets; the rest was written by people."""
    last = choice.resumes
    lines = [
        f"You work on card {card.label} of board {card.board}: {card.title}. Workspace: {found}.",
        "End with the tool kanban_complete when it is done, or kanban_block when you need a person.",
    ]
    if last is not None and last.finished is not None and last.ended is not None:
        reason = last.finished.reason.rstrip(".")
        lines.append(f"You were resumed: run {last.number} ended {duration(now - last.ended.at)} ago ({reason}).")
        new = unread_comments(card, last)
        if new:
            return FirstInput("\n".join(lines), _quoted(new))
        return FirstInput("\n".join(lines), f"{card.body or card.title}\n[{lines[-1]} Nobody has commented since.]")
    fresh = "a new session was asked for" if choice.asked_fresh else choice.fresh_because
    if fresh:
        lines.append(f"You start in a new session: {fresh}.")
    if hand_over:
        lines.append(f"Notes from the previous worker:\n{hand_over}")
    parts = [card.body or card.title]
    if card.comments:
        parts.append(_quoted(card.comments))
    return FirstInput("\n".join(lines), "\n".join(parts))


def earlier_runs(card: Card) -> str:
    """Return how the earlier runs ended, for a worker with a new session."""
    ends = [(run.number, run.finished) for run in card.runs[-RUNS_LISTED:] if run.finished is not None]
    return "\n".join(f"Run {number} ended as {_how_it_ended(end)}" for number, end in ends)


def _how_it_ended(end: RunFinished) -> str:
    return end.reason if end.reason.startswith(end.outcome) else f"{end.outcome}: {end.reason}"


def unread_comments(card: Card, last: Run) -> list[Comment]:
    """Return the comments that the worker of that run has not read."""
    assert last.finished is not None
    assert last.ended is not None
    missed, since = set(last.finished.unread_comments), last.ended.version
    return [one for one in card.comments if one.comment in missed or one.happened.version > since]


def _quoted(comments: Iterable[Comment]) -> str:
    return "\n".join(f"[{one.by} wrote:]\n{one.text}" for one in comments)


def comment_input(by: str, text: str) -> str:
    """Return the input by which a running worker gets a comment."""
    return f"[{by} wrote:]\n{text}"


REMINDER = (
    "[You ended your turn, but the card is still open. Call kanban_complete if it is done, or kanban_block with "
    "what you need. If neither applies, continue.]"
)


# --- ends ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What the end of a worker's turn means for its card."""

    failure: Failure
    reason: str
    counts: bool = False
    again_at: int | None = None
    block: BlockKind | None = None
    remind: bool = False


def run_verdict(card: Card, *, outcome: str, reason: str, problem: Problem | None, limit: int, now: int) -> RunVerdict:
    """Return what the end of a turn means for the card: a failure of the infrastructure is retried later and costs no
    attempt, any other failure costs one, and what only a person can change blocks the card.
    """
    run = card.run
    if outcome == "stopped":
        return RunVerdict("", reason, block="needs_input")
    if outcome == "done":
        if run is not None and not run.reminded:
            return RunVerdict(
                "left_without_a_word", "its worker ended its turn without completing or blocking the card", remind=True
            )
        return _use_attempt(
            card, "left_without_a_word", "its worker was reminded and still did not complete or block the card", limit
        )
    if problem is None:
        return _use_attempt(card, "crash", reason, limit)
    handling = HANDLING[problem.code]
    match handling.on_card:
        case "retry_later":
            return _retry_later(card, handling.failure, reason, now, after_ms=problem.after_ms)
        case "block":
            return RunVerdict(handling.failure, reason, block="capability")
        case "use_attempt":
            return _use_attempt(card, handling.failure, reason, limit)
        case _ as never:
            assert_never(never)


def _use_attempt(card: Card, failure: Failure, reason: str, limit: int) -> RunVerdict:
    used = card.attempts + 1
    if used >= limit:
        return RunVerdict(
            failure, f"{reason.rstrip('.')}; {used} of {limit} attempts were used", True, None, "needs_input"
        )
    return RunVerdict(failure, reason, counts=True)


def timed_out(card: Card, failure: Failure, reason: str, *, limit: int, now: int) -> RunVerdict:
    """Return the verdict on a run that took too long or made no progress."""
    return (
        _retry_later(card, failure, reason, now) if failure == "frozen" else _use_attempt(card, failure, reason, limit)
    )


def _retry_later(card: Card, failure: Failure, reason: str, now: int, *, after_ms: int | None = None) -> RunVerdict:
    if card.failures + 1 >= COOL_TIMES:
        said = f"{reason.rstrip('.')}; it failed {card.failures + 1} times in a row without progress"
        return RunVerdict(failure, said, block="transient")
    pause = min(COOL_MOST_MS, COOL_FIRST_MS << card.failures)
    return RunVerdict(failure, reason, again_at=now + max(pause, after_ms or 0))


# --- advice for people ----------------------------------------------------------------------------

NeedsPerson = Literal["blocked_card", "card_in_review", "card_not_startable"]


@dataclass(frozen=True, slots=True)
class Advice:
    """Why a card waits for a person, and the commands that move it; any one of them does."""

    kind: NeedsPerson
    what: str
    commands: list[str]


@dataclass(frozen=True, slots=True)
class Parent:
    """A card that another one waits for."""

    label: str
    title: str


def advice(
    card: Card, *, profiles: frozenset[str], dead_parents: list[Parent], refused: str, waits_for_node: str = ""
) -> Advice | None:
    """Return why a card needs a person, and what helps; None for a card that does not.

    `dead_parents` were archived before they were done; `refused` says why it cannot be resumed by its policy,
    `waits_for_node` for which node it has waited for a while.
    """
    match card.status:
        case "blocked":
            return Advice("blocked_card", card.reason, unblocking(card.label, refused=bool(refused)))
        case "review":
            commands = [f"holdfast card complete {card.label}", f"holdfast card retry {card.label} -m TEXT"]
            return Advice("card_in_review", "Its result has to be reviewed.", commands)
        case "todo" | "ready":
            never = _never_starts(card, profiles, dead_parents)
            if never is None and waits_for_node:
                return Advice("card_not_startable", waits_for_node, [f"holdfast card move {card.label} --node NAME"])
            return never
        case _:
            return None


def _never_starts(card: Card, profiles: frozenset[str], dead_parents: list[Parent]) -> Advice | None:
    if dead_parents:
        names = ", ".join(f"card {one.label} “{one.title}”" for one in dead_parents)
        were = "which was" if len(dead_parents) == 1 else "which were"
        commands = [f"holdfast card unlink {card.label} {one.label}" for one in dead_parents]
        return Advice("card_not_startable", f"It waits for {names}, {were} archived before it was done.", commands)
    if card.profile not in profiles:
        what = f"There is no profile {card.profile!r}." if card.profile else "It has no profile."
        return Advice("card_not_startable", what, [f"holdfast card assign {card.label} PROFILE"])
    return None


def unblocking(card: str, *, refused: bool) -> list[str]:
    """Return the commands that unblock a card. Where its policy forbids a new session, a plain unblock is not one."""
    if refused:
        return [f"holdfast card unblock {card} --fresh", f"holdfast card edit {card} --resume auto"]
    return [f"holdfast card unblock {card} -m TEXT"]


def what_unblocking_does(card: str, policy: ResumePolicy, *, refused: str) -> str:
    """Return `unblocking` as a sentence."""
    if refused:
        again = f"Its policy is `resume`, but it cannot be resumed: {refused.rstrip('.')}."
        return f"{again} `holdfast card unblock {card} --fresh` starts it with a new session."
    if policy == "fresh":
        return f"`holdfast card unblock {card}` starts it with a new session, by its policy `fresh`."
    return f"`holdfast card unblock {card}` continues it."
