"""Messages for an agent that is at work: which are to join its turn, and what became of each. Pure.

    `steering` in the log → sent, under the id of the message → the agent says whether it took it → joined, or queued

While a message is in `DriverOutputRead.steering` nobody can change it, so after a crash the same is sent, once.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.domain.events.actor import THE_RUNTIME, is_person
from holdfast.domain.events.session import InputRevised, InputsJoined
from holdfast.domain.queue import find, urgent
from holdfast.domain.session import Session


def steering_inputs(session: Session) -> list[str]:
    """Return the messages that are to join the running turn, and were not passed on to its agent."""
    sent = [] if session.output_read is None else session.output_read.steering
    steering = (one.event.input for one in urgent(session.queue) if one.event.mode == "steer")
    return [input for input in steering if input not in sent]


def joined(session: Session, inputs: Iterable[str]) -> list[InputsJoined]:
    """Return that messages have joined the turn, if there are any."""
    found = [queued for input in inputs if (queued := find(session.queue, input)) is not None]
    if session.turn is None or not found:
        return []
    by_person = any(is_person(queued.event.by) for queued in found)
    taken = [queued.event.input for queued in found]
    return [InputsJoined(turn=session.turn.number, inputs=taken, by_person=by_person)]


def postponed(inputs: Iterable[str], reason: str) -> list[InputRevised]:
    """Return that messages wait for the next turn, and why."""
    return [InputRevised(input=input, by=THE_RUNTIME, mode="queue", reason=reason) for input in inputs]
