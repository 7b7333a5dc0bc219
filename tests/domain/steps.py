"""What comes next for a session of the built-in agent, as its worker finds it out."""

from __future__ import annotations

from holdfast.domain.next_step import Advance, BuiltinStep, SessionStep, TurnLimits, builtin_step, session_step
from holdfast.domain.session import Session


def next_step(
    session: Session, limits: TurnLimits, *, now: int, worked_ms: int | None = None
) -> SessionStep | BuiltinStep:
    """The rules for every agent first, then those of ours."""
    step = session_step(session, limits, now=now, worked_ms=worked_ms)
    return builtin_step(session, limits, now=now) if isinstance(step, Advance) else step
