"""What every answer to `why` is made of."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.domain.events.parts import EventRef


@dataclass(frozen=True, slots=True)
class Sentence:
    """A statement and the event behind it."""

    text: str
    version: int
    at: int


def sentence(text: str, happened: EventRef) -> Sentence:
    """A statement that rests on this event."""
    return Sentence(text, happened.version, happened.at)
