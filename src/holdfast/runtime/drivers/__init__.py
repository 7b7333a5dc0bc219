"""Drivers make an agent work on a session, step by step. `builtin.py` drives the built-in agent, `acp.py` and
`command.py` agents of others; what those two do alike is in `external.py`, and what they work with in
`runtime/external/`.

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
from holdfast.runtime.agents import Agent
from holdfast.store.contract import Write


@dataclass(slots=True)
class Events:
    """Events of a session, and what must be written to other streams together with them."""

    session: list[AnyEvent] = field(default_factory=list)
    companions: list[Write] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.session)

    def add(self, other: Events) -> None:
        """Append other events."""
        self.session += other.session
        self.companions += other.companions


@dataclass(frozen=True, slots=True)
class Prepared:
    """The events to store before a step is performed, or instead of performing it."""

    events: Events
    perform: bool
    """Whether the step is to be performed; not when a person must be asked first, or the call was refused."""


class Driver(Protocol):
    """One agent at work on one session, for the life of its worker.

    A new driver is made for each worker (`DriverFactory`), so what must outlive a crash is in the log: a driver that
    comes after one looks at the session alone. It writes through the `SessionWriter` that it is made with, and only
    facts: `writer.commit(Events([...]), at=now)` in the middle of `perform`, or the return value at its end. Whatever
    the agent is, its session looks the same: `ModelRequested` when it is asked, `ModelResponded` with what it said and
    the calls that it makes, `ToolCallStarted` and `ToolCallFinished` for each of them, `WaitOpened` when a person must
    answer. Several calls may be open at a time. Pieces of text are shown with `writer.start_text` and `add_text`.

    An agent that is a process of its own works under a keeper and continues while no gateway is running:

    - `prepare` returns its task as a companion write (`CommandTasks.intent`), so that no process runs which is not in
      the log. `perform` calls `CommandTasks.follow_to_end`, which starts the process unless that has happened.
    - `perform` reads its output by offset, from `session.output_read` on if that is of this task, and commits what
      lines came to **together with** `DriverOutputRead` as the last fact. So after a crash each line is in the log
      once. What was read and not committed is read again, so a line must always become the same events.
    - What is sent to it is kept in a file beside its output, by ids that can be computed from the session. So after a
      crash it is known what was sent, and the rest is sent. The agent is given an answer to one of its own requests
      while the last `DriverOutputRead` says that it is `owed`. An agent that has ended takes no answer; its output is
      read all the same.
    - A question or a permission that the agent asks for is a `WaitOpened` among the facts. `perform` returns with it,
      the worker rests, and the agent waits. When it is answered, the next `perform` finds the answer in
      `session.turn.answers` and sends it. A turn has one open wait: further requests stay `owed` until then.
    - If its process has ended and the turn has not, `perform` returns a `ModelFailed`, or the agent is started again
      and resumes by its own means.
    """

    name: str
    """The name in `SessionCreated.driver`."""
    joins: bool
    """Whether a message can join a running turn between two of its steps (`InputsJoined`). One whose agent is a process
    passes it on while that works, or changes its mode to `queue` with the reason (`InputRevised`).
    """

    async def pick_up(self, session: Session, agent: Agent, left: Partial, break_: Break, *, now: int) -> Events:
        """Return what is known about a turn that an earlier worker left open; nothing if its agent still works.

        Called before all else, if a turn or a summary is open. `left` is the text so far of an open answer. If the turn
        was stopped meanwhile, an agent that still works is notified here, and its open calls get an outcome: the end of
        the turn comes next.
        """
        ...

    def next(self, session: Session, agent: Agent, *, now: int) -> DriverStep:
        """Return the agent's next move, from the session alone. Pure: it is also asked about sessions that may come.

        Asked only when the rules for every agent do not apply (`session_step`): no stop, no open wait, no answer
        that ends the turn. `RunAgent` is the move of an agent that is a process; without an open turn it is `Rest`.
        """
        ...

    async def prepare(self, session: Session, agent: Agent, step: DriverStep, *, now: int) -> Prepared:
        """Return the intent of a step, or what takes its place: a question, a refusal. Nothing is done yet.

        It may be called again for the same step, when somebody wrote to the session before the intent was stored.
        """
        ...

    async def perform(self, session: Session, agent: Agent, step: DriverStep) -> Events:
        """Do it, and return the facts. Its intent is stored. Cancelled when the turn is stopped or the gateway leaves.

        The facts are stored in one append with what follows from them, often the end of the turn.
        """
        ...

    def session_changed(self) -> None:
        """Notice that something was written to the session while `perform` runs: `writer.session` has it."""
        ...

    async def cancel(self, session: Session, step: DriverStep, reason: str, *, begun: bool) -> Events:
        """Return the facts about a step that was cut by a stop or an answer; its intent is stored.

        `perform` was cancelled, or with `begun=False` not called at all. An agent that is a process is asked to stop,
        and its last lines are read, within bounds. Calls that are still open then are closed with the turn.
        """
        ...

    async def leave(self, session: Session, *, now: int) -> Events:
        """Return the events of the open turn at a shutdown: `TurnSuspended` if work pauses
        until the next start; nothing if its agent continues.
        """
        ...
