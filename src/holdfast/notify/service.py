"""Notifications as one part of a gateway."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from holdfast.domain.errors import HoldfastError
from holdfast.notify.channel import Sent
from holdfast.notify.chat_commands import ChatCommands, ChatWork
from holdfast.notify.destinations import Destinations
from holdfast.notify.planner import Planner
from holdfast.notify.presence import Presence
from holdfast.notify.push import PushSubscriptions
from holdfast.notify.push_encryption import PushKey
from holdfast.notify.sender import OutboxSender
from holdfast.notify.telegram.bot import TelegramBot
from holdfast.notify.telegram.updates import TelegramUpdates
from holdfast.periodic import PeriodicTask
from holdfast.store.contract import Store
from holdfast.store.duties import Duty
from holdfast.timings import USUAL, TelegramTimings

DISK_CHECK_SECONDS = 10.0
log = logging.getLogger(__name__)
MEANING = "Agents wait until it does; then they continue automatically."


class DiskWatch(PeriodicTask):
    """Tells once that the disk takes no writes, which the outbox could not keep."""

    def __init__(self, store: Store, destinations: Destinations, sender: OutboxSender) -> None:
        super().__init__(self.look, name="the watch over the disk", every=DISK_CHECK_SECONDS)
        self._store = store
        self._destinations = destinations
        self._sender = sender
        self._notified: set[str] = set()

    async def look(self) -> None:
        """Notify every destination that wants it and was not notified since the disk became full."""
        health = self._store.health
        if health.writable:
            self._notified.clear()
            return
        for destination in self._destinations.all().values():
            if "disk_full" in destination.on and destination.name not in self._notified:
                result = await self._sender.send_now(destination, "disk_full", f"{health.problem} {MEANING}")
                if isinstance(result, Sent):
                    self._notified.add(destination.name)


class Notifications:
    """Everything that notifies people who are not looking, and receives their messages in chats."""

    def __init__(self, work: ChatWork, push_key: Path, timings: TelegramTimings = USUAL.telegram) -> None:
        store, profiles, clock = work.store, work.profiles, work.clock
        self.presence = Presence(clock, store.exchange)
        self._profiles = profiles
        self._is_shared = store.is_shared
        self._settings = store.settings
        self.push = PushSubscriptions(
            store.devices, PushKey(push_key), settings=lambda: profiles.settings.notify.push, contact=self.address
        )
        self.telegram = TelegramBot(store, profiles, timings)
        self.destinations = Destinations(profiles, self.push, self.telegram)
        self.sender = OutboxSender(
            store.outbox,
            self.destinations,
            presence=self.presence,
            clock=clock,
            mask=profiles.mask,
            address=self.address,
        )
        self.planner = Planner(
            store, self.destinations, self.sender, presence=self.presence, clock=clock, mask=profiles.mask
        )
        commands = ChatCommands(work)
        self.updates = TelegramUpdates(self.telegram, commands, store, self.sender, clock=clock, timings=timings)
        self.disk_watch = DiskWatch(store, self.destinations, self.sender)
        self.states = [self.planner.state, self.sender.state, self.updates.state]
        self._duty = Duty(store, "notify")
        self._following_duty: asyncio.Task[None] | None = None

    def address(self) -> str:
        """Where people reach the dashboard from elsewhere; empty when they cannot."""
        return next(iter(self._profiles.settings.gateway.public_urls), "")

    async def share_key(self) -> None:
        """Have the key for push services that all nodes have in common, where there are several."""
        if self._settings is None:
            return
        try:
            await self.push.key.share(self._settings)
        except HoldfastError as error:
            log.warning("this node has no key for push services in common with others: %s", error)

    async def start(self) -> None:
        """Continue where the last gateway was: now, or when this becomes the node that sends notifications."""
        await self.share_key()
        await self.disk_watch.stop()
        await self.watch_disk()
        if ours := await self._duty.is_ours():
            await self._start_telling()
        if self._is_shared:
            self.presence.sharing.start()
            self._following_duty = asyncio.create_task(self._follow_duty(ours=ours), name="the duty to notify")

    async def _start_telling(self) -> None:
        with self._duty.at_work():
            await self.planner.start()
            self.sender.start()
        self.updates.start()  # what is said in a chat is a command with an id, which counts once on any node

    async def _stop_telling(self) -> None:
        await self.updates.stop()
        await self.planner.stop()
        await self.sender.stop()

    async def _follow_duty(self, *, ours: bool) -> None:
        while True:
            if not ours:
                await self._duty.wait_until_ours()
                await self._start_telling()
            await self._duty.wait_until_lost()
            await self._stop_telling()
            ours = False

    async def watch_disk(self) -> None:
        """Notify of a full disk; also before the start, which a full disk does not allow."""
        await self.push.load()
        self.disk_watch.start()

    async def stop(self) -> None:
        """Until the next start. What is being sent is cut, and sent again then."""
        if self._following_duty is not None:
            self._following_duty.cancel()
            await asyncio.gather(self._following_duty, return_exceptions=True)
        await self.disk_watch.stop()
        await self.presence.sharing.stop()
        await self._stop_telling()
        await self.destinations.close()
        await self.telegram.close()
