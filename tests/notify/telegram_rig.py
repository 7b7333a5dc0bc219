"""A gateway in this process whose bot talks to a Bot API server on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.config import Home
from holdfast.profiles import Profiles
from holdfast.store.outbox_store import DeliveryRow
from holdfast.timings import TelegramTimings, Timings
from tests.eventually import eventually
from tests.notify.bot_api_server import TOKEN, BotApiServer, Json, bot_api
from tests.rig import GatewayRig

NOW = 1_700_000_000_000
T = TypeVar("T")
QUICK = TelegramTimings(
    poll=20.0, retry=0.02, look=0.05, between_messages=0.0, between_group_messages=0.0, between_all=0.0
)
ASKS = '[profiles.demo]\nmodel = "demo"\n[profiles.demo.tools]\nread = "ask"\nterminal = "allow"\n'


def config(api: BotApiServer, *, telegram: str = "", more: str = ASKS) -> str:
    """The settings of a gateway with this bot: 42 may talk and approve, 43 may talk."""
    given = telegram or "allow = [42, 43]\napprovers = [42]\n"
    return f'[telegram]\ntoken_env = "TELEGRAM_TOKEN"\napi_url = "{api.url}"\n{given}\n{more}'


class TelegramRig(GatewayRig):
    """All that a chat needs of a gateway: turns, notifications, and the bot."""

    def __init__(self, home: Path, api: BotApiServer, *, timings: TelegramTimings = QUICK) -> None:
        super().__init__(home, Profiles(home / "config.toml"), timings=Timings(telegram=timings))
        self.api = api
        self.notify = self.gateway.notify

    async def begin(self) -> None:
        await self.runner.start()
        await self.notify.start()

    async def close(self) -> None:
        await self.notify.stop()
        await super().close()

    async def seen(self, look: Callable[[], T | None]) -> T:
        """What is found, once it is there."""

        async def again() -> T | None:
            return look()

        found = await eventually(again)
        assert found is not None
        return found

    async def shown(self, text: str, *, chat: int = 42) -> Json:
        """The message of the bot that has this text, once it is there."""
        return await self.seen(lambda: next((one for one in self.api.sent(chat) if text in one["text"]), None))

    async def toast(self, text: str) -> Json:
        return await self.seen(lambda: next((one for one in self.api.toasts if text in one["text"]), None))

    async def settled(self) -> list[DeliveryRow]:
        """All deliveries, once nothing waits to be sent and every update was confirmed."""

        async def look() -> list[DeliveryRow]:
            rows = await self.store.outbox.history(limit=1000)
            busy = self.api.updates or any(row.state in ("pending", "sending") for row in rows)
            return [] if busy else rows

        return await eventually(look)


@asynccontextmanager
async def telegram_rig(home: Path, api: BotApiServer, text: str = "", **more: object) -> AsyncIterator[TelegramRig]:
    """A gateway with a bot, started."""
    Home(home).prepare()
    (home / "config.toml").write_text(text or config(api))
    rig = TelegramRig(home, api, **more)  # type: ignore[arg-type]
    await rig.begin()
    try:
        yield rig
    finally:
        await rig.close()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[BotApiServer]:
    """A Bot API server, and its token in the environment."""
    monkeypatch.setenv("TELEGRAM_TOKEN", TOKEN)
    with bot_api() as found:
        yield found
