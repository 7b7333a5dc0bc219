"""The run of a card that works in a session."""

from __future__ import annotations

from holdfast.domain.events.parts import Event, Rights


class RunBound(Event, frozen=True):
    """A run of a card works in this session from now on; people can only read it, and comment on the card."""

    card: str
    run: int
    cwd: str = ""
    """Where: the workspace may be another one than that of the run before."""
    rights: Rights | None = None
    """What limits its card; added to what limits the session."""
    card_number: int = 0
    """The number of the card; 0 in events of earlier versions."""
    must_remember: bool = False
    """Whether an external agent that does not remember the run before must not go on, by the policy `resume`."""


class RunReleased(Event, frozen=True):
    """The run is over; the session is a session like any other."""

    card: str
    run: int
    card_number: int = 0
    """The number of the card; 0 in events of earlier versions."""


RunBindingEvent = RunBound | RunReleased
