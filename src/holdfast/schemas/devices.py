"""Signing in, devices, and how far each has read, in requests and responses."""

from __future__ import annotations

from typing import Annotated

import msgspec


class Build(msgspec.Struct, frozen=True):
    """The build of the dashboard that is served; a page of another build should reload."""

    version: str
    build: str


class SignInCode(msgspec.Struct, frozen=True):
    """A one-time code that signs one browser in."""

    code: str
    expires_at: int
    urls: list[str] = []
    """Addresses at which other devices reach this gateway: `[gateway] public_urls`. Empty if there are none."""


class RenameDevice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name that people know a device by."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]


class LogIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A one-time code, and the name of the device."""

    code: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    name: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class LoggedIn(msgspec.Struct, frozen=True):
    """A device that was signed in or out."""

    device: str
    name: str


class DeviceView(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is signed in."""

    id: str
    name: str
    created_at: int
    seen_at: int
    current: bool
    connected: int
    """How many of its streams and sockets are open."""


class DeviceList(msgspec.Struct, frozen=True):
    """All devices, oldest first."""

    devices: list[DeviceView]


class OwnDevice(msgspec.Struct, frozen=True):
    """The calling device, the session that it showed last, and how far it has read in each session."""

    device: DeviceView
    last_session: str
    cursors: dict[str, int]
    looked_at: int
    """When its user last marked everything as seen."""


class Reviewed(msgspec.Struct, frozen=True):
    """When the user marked everything as seen, by the gateway's clock."""

    looked_at: int


class ReadPosition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to which version a device has read in a session."""

    session: Annotated[str, msgspec.Meta(min_length=4, max_length=32)]
    version: Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class EndedTasks(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks ended, by state."""

    done: int
    failed: int
    stopped: int
    lost: int


class AwaySummary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of what happened in a session after a version."""

    after: int
    version: int
    messages: int
    """Finished answers of the agent."""
    first: int | None
    """The version of the first of them."""
    since: int
    """The time of the event at `after`."""
    looked_at: int = 0
    """When this device last looked at the session; 0 when that is not known."""
    tool_calls: int
    tasks: EndedTasks
    questions: int
    failures: int
