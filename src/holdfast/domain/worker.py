"""What a session knows of the card that is worked on in it."""

from __future__ import annotations

from holdfast.domain.fact import Event
from holdfast.domain.rights import Rights


class WorkerBound(Event, frozen=True):
    """A run of a card works in this session from now on; elsewhere it is only read, and words are comments."""

    card: str
    run: int
    cwd: str = ""
    """Where: the workspace may be another one than that of the run before."""
    rights: Rights | None = None
    """What limits its card; added to what limits the session."""


class WorkerReleased(Event, frozen=True):
    """The run is over; the session is a session like any other."""

    card: str
    run: int
