"""Actors for tests: a person, an agent, a task."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.domain.events.actor import Actor, PersonActor


def person(client: str = "cli") -> PersonActor:
    return PersonActor(client=client)


def by(event: dict[str, Any]) -> str:
    """The person, agent or service behind an event, as people read it."""
    return str(msgspec.convert(event["by"], Actor))
