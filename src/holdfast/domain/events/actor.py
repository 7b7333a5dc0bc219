"""Actors: a person through some client, an agent, a run of a card, a task, or a part of Holdfast itself.

`str` of an actor is how people read it, as in "stopped by the agent of session 4f…".
"""

from __future__ import annotations

from typing import Literal

from holdfast.domain.card_number import card_label
from holdfast.domain.events.parts import EventPart

ServiceName = Literal["clock", "runtime", "reset clock", "board", "retention"]


class PersonActor(EventPart, frozen=True, tag_field="type", tag="person"):
    """A person, through the command line (`cli`), the dashboard (`web`), the API (`api`) or a chat (`telegram`); where
    a message was imported, through `the terminal of` an external agent.
    """

    client: str
    device: str = ""
    """The id of the browser that is signed in; in Telegram the name and the number of the account: `Ada (42)`."""

    def __str__(self) -> str:
        return f"{self.device} on Telegram" if self.client == "telegram" else self.client


class AgentActor(EventPart, frozen=True, tag_field="type", tag="agent"):
    """The agent of a session, by one of its tool calls."""

    session: str
    call: str = ""

    def __str__(self) -> str:
        return f"the agent of session {self.session}"


class RunActor(EventPart, frozen=True, tag_field="type", tag="run"):
    """The worker of a card."""

    card: str
    run: int
    card_number: int = 0
    """The number of the card; 0 in events of earlier versions."""

    def __str__(self) -> str:
        return f"run {self.run} of card {card_label(self.card_number, self.card)}"


class TaskActor(EventPart, frozen=True, tag_field="type", tag="task"):
    """A background task, by the note about its end."""

    task: str

    def __str__(self) -> str:
        return f"task {self.task}"


class ServiceActor(EventPart, frozen=True, tag_field="type", tag="service"):
    """A part of Holdfast that acts by a rule."""

    name: ServiceName
    rule: str = ""
    """The setting that says so, where there are several."""
    asked_by: PersonActor | None = None
    """The person who had the rule applied now."""

    def __str__(self) -> str:
        words = f"the {self.name} rule {self.rule}" if self.rule else f"the {self.name}"
        return f"{words}, applied by {self.asked_by}" if self.asked_by is not None else words


Actor = PersonActor | AgentActor | RunActor | TaskActor | ServiceActor
THE_CLOCK, THE_RUNTIME = ServiceActor(name="clock"), ServiceActor(name="runtime")
THE_RESET_CLOCK, THE_BOARD = ServiceActor(name="reset clock"), ServiceActor(name="board")


def is_person(actor: Actor) -> bool:
    """Whether a person did it, through whatever client."""
    return isinstance(actor, PersonActor)
