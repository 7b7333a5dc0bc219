"""The events that end a summary without a result: it failed, was interrupted, or is no longer needed. Pure."""

from __future__ import annotations

from holdfast.domain.chapter import INTERRUPTED
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.chapter import SummaryFailed, SummaryStarted
from holdfast.domain.events.problem import Problem
from holdfast.domain.session import Session


def interrupted_summary(session: Session, reason: str, *, now: int) -> list[AnyEvent]:
    """Return the end of the summary that was being written, if one was. It is written again later."""
    trying = session.chapter.in_progress
    if trying is None:
        return []
    problem = Problem(code=INTERRUPTED, message=f"The summary was cut: {reason}.")
    return [failed_summary(trying, problem, retry_at=now)]


def cancelled_hand_over(session: Session) -> list[AnyEvent]:
    """Return the end of a reset that waited for its note when a message came."""
    if not session.chapter.hand_over_requested:
        return []
    problem = Problem(code=INTERRUPTED, message="A message came before the note was written: there is no reset.")
    attempt = session.chapter.hand_over_failures + 1
    return [
        SummaryFailed(covers_turn=session.turns, attempt=attempt, problem=problem, retry_at=None, purpose="hand_over")
    ]


def failed_summary(started: SummaryStarted, problem: Problem, *, retry_at: int | None) -> SummaryFailed:
    """Return the end of a summary that failed."""
    return SummaryFailed(
        covers_turn=started.covers_turn,
        covers_step=started.covers_step,
        attempt=started.attempt,
        problem=problem,
        retry_at=retry_at,
        purpose=started.purpose,
    )
