"""Notifications, in requests and responses."""

from __future__ import annotations

from typing import Annotated

import msgspec


class DestinationView(msgspec.Struct, frozen=True, kw_only=True):
    """A place where people are told."""

    name: str
    on: list[str]
    """The kinds of notices that it gets."""
    only_when_nobody_looks: bool
    details: bool
    home_channel: bool
    """Whether the gateway itself reports there."""
    pending: int
    problem: str
    """Why the first pending delivery was not sent yet; empty when nothing is wrong."""


class DestinationList(msgspec.Struct, frozen=True):
    """All destinations of config.toml."""

    destinations: list[DestinationView]


class DeliveryView(msgspec.Struct, frozen=True, kw_only=True):
    """A notice for one destination, and what became of it."""

    id: str
    destination: str
    kind: str
    at: int
    title: str
    summary: str
    link: str
    state: str
    """`pending`, `sending`, `sent`, `unsure` (a crash left it in doubt), `failed` (given up) or `dropped`."""
    attempts: int
    due_at: int
    changed_at: int
    reason: str
    """Why it is tried again, failed or was dropped."""
    settled: str
    """How its matter was settled since."""


class DeliveryList(msgspec.Struct, frozen=True):
    """Deliveries, newest first."""

    deliveries: list[DeliveryView]


class TestNotice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which destination gets a test."""

    destination: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a test."""

    destination: str
    sent: bool
    problem: str
    hint: str = ""


class Looking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a visible page or an attached terminal shows now."""

    streams: Annotated[list[Annotated[str, msgspec.Meta(max_length=100)]], msgspec.Meta(max_length=20)]
    """Such as `session/4f…` or `card/9a…`."""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """For how long that counts."""

    for_ms: int
