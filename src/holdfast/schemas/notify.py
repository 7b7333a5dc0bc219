"""Notifications, in requests and responses."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.notify_settings import NoticeName


class DestinationView(msgspec.Struct, frozen=True, kw_only=True):
    """A place to which notifications are sent."""

    name: str
    on: list[str]
    """The kinds of notices that it gets."""
    only_when_nobody_looks: bool
    details: bool
    home_channel: bool
    """Whether the gateway itself reports there."""
    pending: int
    problem: str
    """Why the first pending delivery was not sent yet, or why nothing can be sent; empty when nothing is wrong."""
    label: str = ""
    """The name of the device, if it is one."""
    sent_at: int = 0
    """When something last arrived there; 0 when nothing did in 30 days."""
    given_up: int = 0
    """How many deliveries were given up in 30 days."""
    ended: bool = False
    """Whether a device takes no pushes any longer, until somebody turns them on again there."""


class DestinationList(msgspec.Struct, frozen=True):
    """All destinations: those of config.toml, and the devices that take pushes."""

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


class PushKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a subscription, as a browser gives them: messages are encrypted with them."""

    p256dh: Annotated[str, msgspec.Meta(max_length=200)]
    auth: Annotated[str, msgspec.Meta(max_length=100)]


class PushSubscribe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the browser of the calling device takes pushes, and which ones. Rules that are null stay the same."""

    endpoint: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    keys: PushKeys
    on: Annotated[list[NoticeName], msgspec.Meta(max_length=20)] | None = None
    only_when_nobody_looks: bool | None = None
    details: bool | None = None


class PushView(msgspec.Struct, frozen=True, kw_only=True):
    """The subscription of a device."""

    destination: str
    """Its name among the destinations."""
    service: str
    """The host of the push service of its browser."""
    on: list[str]
    only_when_nobody_looks: bool
    details: bool
    changed_at: int
    ended: str
    """Why it takes no pushes any longer; empty while it does."""


class PushState(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser needs to subscribe, and the subscription of the calling device, if it has one."""

    key: str
    """The public key of this gateway (`applicationServerKey`)."""
    subscription: PushView | None


class Looking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a visible page or an attached terminal shows now."""

    streams: Annotated[list[Annotated[str, msgspec.Meta(max_length=100)]], msgspec.Meta(max_length=20)]
    """Such as `session/4f…` or `card/9a…`."""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """For how long that counts."""

    for_ms: int
