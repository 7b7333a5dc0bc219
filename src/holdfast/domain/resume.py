"""`pick_up`: what a new worker writes about a turn that an earlier one left open, and whether the turn is resumed."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.domain.events import AnyEvent
from holdfast.domain.events.session import Interruption, TurnResumed, WaitOpened
from holdfast.domain.next_step import (
    Partial,
    TurnLimits,
    close_call,
    interrupted_answer,
    stop_reason,
    wait_id,
)
from holdfast.domain.session import Session, Turn
from holdfast.domain.summary import interrupted_summary
from holdfast.domain.text import duration

CRASHED = "the gateway was killed or crashed"
AGAIN_AFTER_CRASH = frozenset({"pure", "idempotent", "keyed"})
JUST_ANSWERED_MS = 60_000
"""However short the age limit is, a person's answer is not old at once."""


@dataclass(frozen=True, slots=True)
class Break:
    """How long no worker worked on a turn, and why."""

    away_ms: int | None = None
    """Since the last sign of life; None when only the log is known. The log alone may give too long a time: a long call
    writes no events, and the wall clock may have been set."""
    cause: str = CRASHED
    node_lost: bool = False
    """Whether the node that worked on it was lost; that is no failure of the turn."""
    command_ms: int | None = None
    """Since the last sign of life of a command that the turn waits for: it works on while no gateway is there."""


NO_BREAK = Break()


def pick_up(
    session: Session, partial: Partial, break_: Break = NO_BREAK, *, now: int, limits: TurnLimits
) -> list[AnyEvent]:
    """Return what a new worker writes before it continues a turn that an earlier one left open.

    The cut answer becomes a fact, effects that may not be repeated become `unknown`, and the turn
    is resumed; or, when it is too old or was resumed too often without progress, it waits for a person. A turn that
    was stopped is not resumed: its end comes next.
    """
    turn = session.turn
    trying = interrupted_summary(session, CRASHED, now=now)
    if turn is None or turn.wait is not None:
        return trying
    away = _away(session, turn, partial, break_, now)
    if turn.last_kind == "WaitAnswered" and away <= max(limits.resume_age_ms, JUST_ANSWERED_MS):
        return trying  # not an interruption: the answer started this worker
    cause = turn.suspended or break_.cause
    events = trying
    if turn.asked:
        events.append(interrupted_answer(turn, partial, cause))
    for open_call in turn.open_calls.values():
        if open_call.effect is not None and open_call.effect not in AGAIN_AFTER_CRASH:
            events.append(close_call(session, turn, open_call, cause))
    if stop_reason(session) is not None:
        return events
    idle = away if break_.command_ms is None else min(away, break_.command_ms)
    reason = _why_not_resume(turn, idle, limits)
    if reason is not None:
        wait = wait_id(session, turn)
        events.append(WaitOpened(turn=turn.number, wait=wait, purpose="resume", reason=reason))
    else:
        how: Interruption = "shutdown" if turn.suspended else "node_lost" if break_.node_lost else "crash"
        attempt = turn.resumes + (how == "crash")
        events.append(TurnResumed(turn=turn.number, attempt=attempt, interruption=how, reason=cause, away_ms=away))
    return events


def _away(session: Session, turn: Turn, partial: Partial, break_: Break, now: int) -> int:
    """Return how long no worker worked on it, since the last event or the last sign of life."""
    by_log = now - max(session.updated_at, partial.at, turn.last_done.at)
    if break_.away_ms is None or 0 <= by_log < break_.away_ms:
        return max(0, by_log)
    return max(0, break_.away_ms)


def _why_not_resume(turn: Turn, away: int, limits: TurnLimits) -> str | None:
    if away > limits.resume_age_ms:
        return f"it was interrupted {duration(away)} ago, too long to be resumed automatically"
    if turn.resumes >= limits.resume_attempts:
        return f"it was interrupted {turn.resumes} times in a row without progress"
    if turn.nodes_lost >= limits.resume_attempts:
        return f"{turn.nodes_lost} nodes in a row were lost while they worked on it, without progress"
    return None
