"""The system stream: starts and stops of gateways, and deletions, since a deleted stream cannot record them itself."""

from __future__ import annotations

from holdfast.domain.events.actor import Actor
from holdfast.domain.events.parts import Event
from holdfast.domain.events.task import TaskPruned


class GatewayStarted(Event, frozen=True):
    """A gateway started with this home."""

    pid: int
    version: str
    boot: str
    version_before: str = ""
    """The version of the gateway that had the home before; empty for the first."""
    node: str = "local"


class GatewayStopped(Event, frozen=True):
    """A gateway was shut down cleanly; after a crash this is missing."""

    pid: int
    reason: str
    node: str = "local"


class NodeEnded(Event, frozen=True):
    """The gateway of a node ended or was lost while others continued; others may take over its work from here on."""

    node: str
    reason: str
    heard_at: int = 0
    """The last sign of life of one that was lost, by the clock of the database; 0 for one that was shut down."""


class NodeDrained(Event, frozen=True):
    """A node gave back what others can continue, since it is going to stop; others take it from here on."""

    node: str


class SessionDeleted(Event, frozen=True):
    """A session and its events were deleted on request."""

    session: str
    title: str
    events: int
    by: Actor


class StaleListed(Event, frozen=True):
    """Stale commands: running, but no longer needed, as found at the daily hour."""

    tasks: list[str]
    reasons: list[str]


SystemEvent = GatewayStarted | GatewayStopped | NodeDrained | NodeEnded | SessionDeleted | StaleListed | TaskPruned
