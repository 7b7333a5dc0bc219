"""The queue of a session: inputs that no turn has taken yet. People may still change them.

Pure functions from one queue to the next; `turn_fold.py` folds with them, `session_rules.py` checks the commands.
"""

from __future__ import annotations

import msgspec

from holdfast.domain.events import Record
from holdfast.domain.events.parts import EventRef
from holdfast.domain.events.session import InputReceived, InputRevised, InputWithdrawn


class QueuedInput(msgspec.Struct, frozen=True, gc=False):
    """An input in the queue, with all its revisions."""

    event: InputReceived
    received: EventRef


QUEUE_LIMIT = 1_000
"""The most messages that may wait in one session."""


Queue = tuple[QueuedInput, ...]
"""The messages in their order."""


def urgent(queue: Queue) -> list[QueuedInput]:
    """Return the inputs that steer or interrupt, in their order."""
    return [queued for queued in queue if queued.event.mode != "queue"]


def interrupting(queue: Queue) -> list[QueuedInput]:
    """Return the first input that interrupts, preceded by those before it that steer. Empty when none interrupts."""
    found: list[QueuedInput] = []
    for queued in urgent(queue):
        found.append(queued)
        if queued.event.mode == "interrupt":
            return found
    return []


def find(queue: Queue, input: str) -> QueuedInput | None:
    """Return the input with this id, if it is still queued."""
    return next((queued for queued in queue if queued.event.input == input), None)


def revised(received: InputReceived, change: InputRevised) -> InputReceived:
    """Return an input after a revision."""
    text = received.text if change.text is None else change.text
    mode = received.mode if change.mode is None else change.mode
    return msgspec.structs.replace(received, text=text, mode=mode)


def revise(queue: Queue, change: InputRevised) -> Queue:
    """Return the queue after a revision; a place behind the end is the end."""
    old = find(queue, change.input)
    if old is None:
        return queue
    new = msgspec.structs.replace(old, event=revised(old.event, change))
    if change.place is None:
        return tuple(new if queued is old else queued for queued in queue)
    others = [queued for queued in queue if queued is not old]
    return (*others[: change.place - 1], new, *others[change.place - 1 :])


def withdraw(queue: Queue, input: str) -> Queue:
    """Return the queue without this input."""
    return tuple(queued for queued in queue if queued.event.input != input)


def take(queue: Queue, inputs: list[str]) -> tuple[list[QueuedInput], Queue]:
    """Return the inputs that a turn takes, in its order, and the queue that is left."""
    if len(inputs) == 1 and queue and queue[0].event.input == inputs[0]:  # nearly always
        return [queue[0]], queue[1:]
    known = {queued.event.input: queued for queued in queue}
    taken = [known[input] for input in inputs if input in known]
    wanted = {queued.event.input for queued in taken}
    return taken, tuple(queued for queued in queue if queued.event.input not in wanted)


def edited(records: list[Record]) -> tuple[set[str], dict[str, InputReceived]]:
    """Return the ids of withdrawn inputs, and every input after all its revisions."""
    withdrawn: set[str] = set()
    reads: dict[str, InputReceived] = {}
    for record in records:
        match record.event:
            case InputReceived() as event:
                reads[event.input] = event
            case InputRevised() as event:
                reads[event.input] = revised(reads[event.input], event)
            case InputWithdrawn(input=input):
                withdrawn.add(input)
            case _:
                continue
    return withdrawn, reads
