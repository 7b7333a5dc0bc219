"""The queue of a session: what was said and no turn has taken yet. People may still change it.

Pure functions from one queue to the next; `session.py` folds with them, `decide.py` says what may be asked.
"""

from __future__ import annotations

import msgspec

from holdfast.domain.events import InputReceived, InputRevised, InputWithdrawn, Record
from holdfast.domain.fact import Happened


class QueuedInput(msgspec.Struct, frozen=True, gc=False):
    """Something said that no turn has taken yet, as it reads now."""

    event: InputReceived
    received: Happened


Queue = list[QueuedInput]


def find(queue: Queue, input: str) -> QueuedInput | None:
    """The one with this id, if it is still there."""
    return next((queued for queued in queue if queued.event.input == input), None)


def revised(received: InputReceived, change: InputRevised) -> InputReceived:
    """What it says after a change."""
    text = received.text if change.text is None else change.text
    mode = received.mode if change.mode is None else change.mode
    return msgspec.structs.replace(received, text=text, mode=mode)


def revise(queue: Queue, change: InputRevised) -> Queue:
    """The queue after a change; a place behind the end is the end."""
    old = find(queue, change.input)
    if old is None:
        return queue
    new = msgspec.structs.replace(old, event=revised(old.event, change))
    if change.place is None:
        return [new if queued is old else queued for queued in queue]
    others = [queued for queued in queue if queued is not old]
    return [*others[: change.place - 1], new, *others[change.place - 1 :]]


def withdraw(queue: Queue, input: str) -> Queue:
    """The queue without it."""
    return [queued for queued in queue if queued.event.input != input]


def take(queue: Queue, inputs: list[str]) -> tuple[Queue, Queue]:
    """Those that a turn takes, in the order in which it takes them; and those that stay."""
    known = {queued.event.input: queued for queued in queue}
    taken = [known[input] for input in inputs if input in known]
    return taken, [queued for queued in queue if queued not in taken]


def edited(records: list[Record]) -> tuple[set[str], dict[str, InputReceived]]:
    """Which messages were taken back, and how each reads after all changes."""
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
