"""Takes the place of a driver that this gateway does not have: turns of such a session fail at once and say why."""

from __future__ import annotations

from holdfast.clock import Clock
from holdfast.domain.events.problem import Problem
from holdfast.domain.next_step import DriverStep, Finish, Rest
from holdfast.domain.session import Session
from holdfast.runtime.agent import Agent
from holdfast.runtime.drivers.builtin import BuiltinDriver
from holdfast.runtime.writer import SessionWriter


class MissingDriver(BuiltinDriver):
    """What was left open is described as for our own agent; then the turn ends."""

    joins = False

    def __init__(self, writer: SessionWriter, clock: Clock, *, known: list[str]) -> None:
        super().__init__(writer, clock)
        self._known = known

    def next(self, session: Session, agent: Agent, *, now: int) -> DriverStep:  # noqa: ARG002
        """Fail the turn, whatever it was to do."""
        if session.turn is None:
            return Rest()
        message = f"This gateway has no driver {session.driver!r}, which the session needs."
        hint = f"It has: {', '.join(self._known)}. Start the version that made the session, or begin a new session."
        problem = Problem(code="unknown_driver", message=message, hint=hint)
        return Finish(session.turn.number, "failed", message, problem)
