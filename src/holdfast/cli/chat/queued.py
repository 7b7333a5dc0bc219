"""The messages of a session that no turn has taken yet, as the chat shows them."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.client.http import Json


@dataclass(slots=True)
class Queued:
    """A message that no turn has taken yet."""

    input: str
    text: str
    mode: str
    by: str
    source: str = "message"

    @property
    def is_note(self) -> bool:
        """Whether it is the runtime's word about a task, and no person's."""
        return self.source == "task"


def queued_input(of: Json, by: str) -> Queued:
    """An entry of the queue, or the event that put it there; `by` is who said it, in words."""
    return Queued(of["input"], of["text"], of["mode"], by, of.get("source", "message"))
