"""What a person does about a turn that failed."""

from __future__ import annotations

from holdfast.domain.fact import Event


class FailureDismissed(Event, frozen=True):
    """A person has seen that this turn failed; it leaves the inbox."""

    turn: int
    by: str
