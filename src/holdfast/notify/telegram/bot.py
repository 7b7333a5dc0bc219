"""The bot of the settings: its client, and its chats as destinations."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from holdfast.notify.destinations import Destination
from holdfast.notify.notices import OF_THE_GATEWAY
from holdfast.notify.telegram.bot_api import BotAddress, BotApi
from holdfast.notify.telegram.channel import TelegramChat
from holdfast.notify.telegram.formatting import as_html
from holdfast.notify_settings import NotifySettings, TelegramSettings
from holdfast.profiles import Profiles
from holdfast.store.contract import Store
from holdfast.timings import TelegramTimings

SERVICE = "telegram"
TOKEN = re.compile(r"\d{1,20}:[A-Za-z0-9_-]{20,}")
STRANGER = "telegram-stranger"
"""Instead of the name of the service: a private chat with somebody who gets a code and nothing else."""
CHAT = re.compile(rf"({SERVICE}|{STRANGER}):(-?\d{{1,20}})(?::(\d{{1,20}}))?")


def chat_name(chat: int, topic: int = 0) -> str:
    """Return a chat, or a topic of a group, as sessions name it."""
    return f"{SERVICE}:{chat}:{topic}" if topic else f"{SERVICE}:{chat}"


class ChatPace:
    """Keeps the messages of one chat within the limits of the API."""

    def __init__(self, bot: TelegramBot, chat: int) -> None:
        self._bot = bot
        self._chat = chat

    async def wait(self) -> None:
        """Return when the next message may be sent."""
        as_html("")  # loads what the first message needs: from now on a crash leaves in doubt whether it was sent
        if (api := self._bot.api()) is not None:
            await api.wait_for_turn(self._chat)


class TelegramBot:
    """The bot as it is set up now. Changes of the settings count from the next look at it."""

    def __init__(self, store: Store, profiles: Profiles, timings: TelegramTimings) -> None:
        self._store = store
        self._profiles = profiles
        self._timings = timings
        self._api: BotApi | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._made_of: tuple[TelegramSettings, NotifySettings] | None = None
        self._notified: dict[str, Destination] = {}
        self.names: dict[int, str] = {}
        """The names of the people who wrote since the start."""

    @property
    def settings(self) -> TelegramSettings:
        """What config.toml says."""
        return self._profiles.settings.telegram

    @property
    def is_on(self) -> bool:
        """Whether it is set up."""
        return bool(self.settings.token_env)

    @property
    def token_problem(self) -> str:
        """What is wrong with the token, as far as can be seen without asking; empty when nothing is."""
        settings = self.settings
        if not settings.token_env:
            return "[telegram] is not set up in config.toml."
        if not settings.token():
            name = settings.token_env
            return f"{name} is not set in the environment of the gateway: `holdfast restart` where it is set."
        if not TOKEN.fullmatch(settings.token()):
            return f"{settings.token_env} is no token of a bot; @BotFather gives one, like 123456:ABC…"
        return ""

    def api(self) -> BotApi | None:
        """Return the client; None while there is no token."""
        if self.token_problem:
            return None
        address = BotAddress(self.settings.api_url, self.settings.token())
        if self._api is None or self._api.address != address:
            self._let_go()
            self._api = BotApi(address, self._timings)
        return self._api

    def _let_go(self) -> None:
        if self._api is not None:
            task = asyncio.ensure_future(self._api.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
            self._api = None

    async def close(self) -> None:
        """Let go of the connections."""
        self._let_go()
        await asyncio.gather(*self._closing, return_exceptions=True)

    # --- chats as destinations --------------------------------------------------------------------

    def all(self) -> Mapping[str, Destination]:
        """Return the chats that are told of what happens in other sessions, by name."""
        found = self._profiles.settings
        settings, notify = found.telegram, found.notify
        if (settings, notify) != self._made_of:
            self._made_of = (settings, notify)
            self._notified = {f"{SERVICE}.{chat}": self._told(chat) for chat in settings.notify} if self.is_on else {}
        return self._notified

    def _told(self, chat: int) -> Destination:
        settings, name = self.settings, f"{SERVICE}.{chat}"
        home = OF_THE_GATEWAY if self._profiles.settings.notify.home_channel == name else ()
        return Destination(
            name=name,
            channel=self._chat(chat, 0, details=settings.details),
            on=frozenset(settings.on) | frozenset(home),
            when_absent=settings.only_when_nobody_looks,
            details=settings.details,
            chat=chat_name(chat),
            pace=ChatPace(self, chat),
        )

    def find(self, chat: str) -> Destination | None:
        """Return the chat of a session; None for a private chat of somebody who may no longer talk."""
        found = CHAT.fullmatch(chat)
        if found is None or not self.is_on:
            return None
        number, topic = int(found[2]), int(found[3] or 0)
        if number > 0 and number not in self.settings.allow and found[1] != STRANGER:
            return None
        return Destination(
            name=chat,
            channel=self._chat(number, topic, details=True),
            on=frozenset(),
            when_absent=False,
            details=True,
            chat=chat,
            is_conversation=True,
            pace=ChatPace(self, number),
        )

    def _chat(self, chat: int, topic: int, *, details: bool) -> TelegramChat:
        return TelegramChat(self, self._store, self._profiles.mask, chat=chat, topic=topic, details=details)
