"""Drivers: what makes an agent work on a session, step by step. `builtin.py` is our own agent.

The loop in `turn.py` alternates between planning and performing. What an effect yields are *facts*; what follows from
them until the next effect are *decisions*; both are one append, and nothing leaves the process before that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from holdfast.domain.events import AnyEvent
from holdfast.domain.next_step import DriverStep, Partial
from holdfast.domain.resume import Break
from holdfast.domain.session import Session
from holdfast.runtime.agent import Agent
from holdfast.store.contract import Write


@dataclass(slots=True)
class Events:
    """Events of a session, and what must be written to other streams together with them."""

    session: list[AnyEvent] = field(default_factory=list)
    companions: list[Write] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.session)

    def add(self, other: Events) -> None:
        """Put others behind these."""
        self.session += other.session
        self.companions += other.companions


@dataclass(frozen=True, slots=True)
class Prepared:
    """What must be on disk before a step is performed; or instead of it, when nothing is to be performed now."""

    events: Events
    perform: bool
    """Whether there is an effect now: not when a person must be asked first, or the call was refused."""


class Driver(Protocol):
    """One agent at work on one session, for the life of its worker."""

    async def pick_up(self, session: Session, agent: Agent, left: Partial, break_: Break, *, now: int) -> Events:
        """Say what is known about a turn that an earlier worker left open."""
        ...

    def next(self, session: Session, agent: Agent, *, now: int) -> DriverStep:
        """Return the agent's next move. Pure."""
        ...

    async def prepare(self, session: Session, agent: Agent, step: DriverStep, *, now: int) -> Prepared:
        """Return the intent of a step, or what takes its place: a question, a refusal."""
        ...

    async def perform(self, session: Session, agent: Agent, step: DriverStep) -> Events:
        """Do it, and return the facts. Cancelled when somebody stops the turn."""
        ...

    def not_begun(self, session: Session, step: DriverStep, reason: str) -> Events:
        """Return the outcome of a step whose intent is written and which will not be performed."""
        ...
