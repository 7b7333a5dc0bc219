"""Who does something in a test."""

from __future__ import annotations

from holdfast.domain.events.actor import PersonActor


def person(client: str = "cli") -> PersonActor:
    return PersonActor(client=client)
