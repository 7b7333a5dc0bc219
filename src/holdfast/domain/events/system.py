"""The system stream: gateways that come and go, and what was deleted, which no stream of its own can tell any more."""

from __future__ import annotations

from holdfast.domain.events.actor import Actor
from holdfast.domain.events.parts import Event
from holdfast.domain.events.task import TaskPruned


class GatewayStarted(Event, frozen=True):
    """A gateway took the home over."""

    pid: int
    version: str
    boot: str


class GatewayStopped(Event, frozen=True):
    """A gateway was shut down cleanly; after a crash this is missing."""

    pid: int
    reason: str


class SessionDeleted(Event, frozen=True):
    """A session and its events were deleted because somebody asked for it."""

    session: str
    title: str
    events: int
    by: Actor


class StaleListed(Event, frozen=True):
    """Commands that run and that nobody waits for any more, as they were found at the daily hour."""

    tasks: list[str]
    reasons: list[str]


SystemEvent = GatewayStarted | GatewayStopped | SessionDeleted | StaleListed | TaskPruned
