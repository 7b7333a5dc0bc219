"""The driver of sessions whose own driver this gateway does not have: their turns fail at once and say why."""

from __future__ import annotations

from holdfast.clock import Clock
from holdfast.domain.events.problem import Problem
from holdfast.domain.next_step import DriverStep, Finish, Rest
from holdfast.domain.session import Session
from holdfast.runtime.agent import Agent
from holdfast.runtime.drivers.builtin import BuiltinDriver
from holdfast.runtime.writer import SessionWriter


class MissingDriver(BuiltinDriver):
    """Describes an open turn as the built-in driver does, then fails it."""

    joins = False

    def __init__(self, writer: SessionWriter, clock: Clock, *, known: list[str]) -> None:
        super().__init__(writer, clock)
        self._known = known

    def next(self, session: Session, agent: Agent, *, now: int) -> DriverStep:  # noqa: ARG002
        """Fail the turn."""
        if session.turn is None:
            return Rest()
        message = f"This gateway has no driver {session.driver!r}, which the session needs."
        hint = f"It has: {', '.join(self._known)}. Start the version that made the session, or begin a new session."
        problem = Problem(code="unknown_driver", message=message, hint=hint)
        return Finish(session.turn.number, "failed", message, problem)
