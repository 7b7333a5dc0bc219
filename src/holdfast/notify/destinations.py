"""Destinations: where notifications go, and through which channel: by the settings, and on devices that take pushes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from holdfast.notify.apprise import AppriseChannel
from holdfast.notify.channel import Channel
from holdfast.notify.notices import OF_THE_GATEWAY, Notice
from holdfast.notify.push import PREFIX, PushChannel, PushSubscriptions
from holdfast.notify.webhooks import Webhook
from holdfast.notify_settings import AppriseSettings, NotifySettings, WebhookSettings
from holdfast.profiles import Profiles
from holdfast.store.device_store import PushRow

log = logging.getLogger(__name__)


class Pace(Protocol):
    """How often something may be sent."""

    async def wait(self) -> None:
        """Return when the next message may be sent."""
        ...


@dataclass(frozen=True, slots=True)
class Destination:
    """A place to which notifications are sent."""

    name: str
    channel: Channel
    on: frozenset[str]
    when_absent: bool
    """Only when nobody looks at what it is about."""
    details: bool
    """It may say more than the title."""
    chat: str = ""
    """The chat that it is, where sessions are held (`SessionCreated.chat`)."""
    is_conversation: bool = False
    """It gets the answers of the sessions of its chat, each of them: nothing takes the place of many."""
    pace: Pace | None = None
    """Keeps to the limits of a service."""

    def wants(self, notice: Notice) -> bool:
        """Whether a notice is for it."""
        return notice.kind in self.on


class Chats(Protocol):
    """A service in whose chats sessions are held."""

    @property
    def is_on(self) -> bool:
        """Whether it is set up."""
        ...

    def all(self) -> Mapping[str, Destination]:
        """The chats that are notified of other sessions, cards and tasks."""
        ...

    def find(self, chat: str) -> Destination | None:
        """The chat of a session as a destination; None when it may not be written to any longer."""
        ...


class Destinations:
    """All destinations of now. The channels of the settings stay the same until `[notify]` changes."""

    def __init__(self, profiles: Profiles, push: PushSubscriptions, chats: Chats) -> None:
        self._profiles = profiles
        self._push = push
        self._rows: Mapping[str, PushRow] = {}
        self.chats = chats
        self._settings: NotifySettings | None = None
        self._all: dict[str, Destination] = {}
        self._configured: dict[str, Destination] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def all(self) -> Mapping[str, Destination]:
        """Return them by name."""
        settings = self._profiles.settings.notify
        if settings != self._settings:
            self._replace(_made_of(settings))
            self._settings = settings
        if self._push.rows is not self._rows:
            self._rows = self._push.rows
            self._all = self._configured | _of_devices(self._push)
        return {**self._all, **self.chats.all()}

    def find(self, name: str) -> Destination | None:
        """Return the destination of a delivery; None when it no longer exists."""
        return self.all().get(name) or self.chats.find(name)

    def _replace(self, found: dict[str, Destination]) -> None:
        for destination in self._configured.values():
            task = asyncio.ensure_future(destination.channel.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        self._configured = found
        self._all = found | _of_devices(self._push)

    async def close(self) -> None:
        """Let go of all connections."""
        self._replace({})
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self._push.close()


def _of_devices(push: PushSubscriptions) -> dict[str, Destination]:
    """The devices that take pushes."""
    found: dict[str, Destination] = {}
    for row in push.rows.values():
        if not row.ended:
            name = f"{PREFIX}{row.device}"
            found[name] = Destination(
                name=name,
                channel=PushChannel(row, push),
                on=frozenset(row.kinds),
                when_absent=row.when_absent,
                details=row.details,
            )
    return found


def _made_of(settings: NotifySettings) -> dict[str, Destination]:
    found: list[tuple[str, WebhookSettings | AppriseSettings, Channel]] = []
    found += [(f"webhooks.{name}", one, Webhook(one)) for name, one in settings.webhooks.items()]
    found += [(f"apprise.{name}", one, AppriseChannel(one)) for name, one in settings.apprise.items()]
    return {
        name: Destination(
            name=name,
            channel=channel,
            on=frozenset(one.on) | frozenset(OF_THE_GATEWAY if settings.home_channel == name else ()),
            when_absent=one.only_when_nobody_looks,
            details=one.details,
        )
        for name, one, channel in found
    }
