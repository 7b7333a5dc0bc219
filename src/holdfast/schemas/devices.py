"""Signing in, devices, how far each has read and what it missed, on the wire."""

from __future__ import annotations

from typing import Annotated

import msgspec


class Build(msgspec.Struct, frozen=True):
    """Which dashboard is served: a page of another build should load itself anew."""

    version: str
    build: str


class SignInCode(msgspec.Struct, frozen=True):
    """Lets one browser in, once."""

    code: str
    expires_at: int


class LogIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A one-time code, and what the device is called."""

    code: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    name: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class LoggedIn(msgspec.Struct, frozen=True):
    """The device that a browser is from now on, or was."""

    device: str
    name: str


class DeviceView(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that was let in."""

    id: str
    name: str
    created_at: int
    seen_at: int
    current: bool
    connected: int
    """How many streams and sockets of it are open now."""


class DeviceList(msgspec.Struct, frozen=True):
    """All devices, oldest first."""

    devices: list[DeviceView]


class OwnDevice(msgspec.Struct, frozen=True):
    """The device that asks, the session that it looked at last, and how far it has read in each."""

    device: DeviceView
    last_session: str
    cursors: dict[str, int]
    looked_at: int
    """When somebody last looked through what happened."""


class Reviewed(msgspec.Struct, frozen=True):
    """When somebody looked through what happened, by the gateway's clock."""

    looked_at: int


class ReadPosition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to which version a device has read in a session."""

    session: Annotated[str, msgspec.Meta(min_length=4, max_length=32)]
    version: Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class EndedTasks(msgspec.Struct, frozen=True, kw_only=True):
    """How many ended, and how."""

    done: int
    failed: int
    stopped: int
    lost: int


class AwaySummary(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a session after a version, in numbers."""

    after: int
    version: int
    messages: int
    """Finished texts of the agent."""
    first: int | None
    """The version of the first of them."""
    since: int
    """When the event at `after` was."""
    tool_calls: int
    tasks: EndedTasks
    questions: int
    failures: int
