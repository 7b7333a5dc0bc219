"""A client of the Telegram Bot API: few methods, and of each request it is known what became of it.

The token is part of every address, so no address is ever logged or put into an error.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from httpcore2 import (
    AsyncConnectionPool,
    ConnectError,
    ConnectTimeout,
    NetworkError,
    PoolTimeout,
    ProtocolError,
    TimeoutException,
)

from holdfast.notify.addresses import connection_pool, failure_words
from holdfast.timings import USUAL, TelegramTimings

SECONDS = 20.0
"""How long a connection, and how long an answer may take; an answer to a long poll may take longer."""
PUBLIC_API = "https://api.telegram.org"


class User(msgspec.Struct, frozen=True):
    """An account: a person or a bot."""

    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class Chat(msgspec.Struct, frozen=True):
    """A private chat (its id is that of the person), a group or a channel."""

    id: int
    type: str = "private"


class TelegramMessage(msgspec.Struct, frozen=True):
    """A message; everything but a text is left out."""

    message_id: int
    chat: Chat
    date: int = 0
    sender: User | None = msgspec.field(default=None, name="from")
    text: str = ""
    message_thread_id: int = 0
    is_topic_message: bool = False


class CallbackQuery(msgspec.Struct, frozen=True):
    """A button was pressed."""

    id: str
    sender: User = msgspec.field(name="from")
    message: TelegramMessage | None = None
    data: str = ""


class Update(msgspec.Struct, frozen=True):
    """Something that happened. Until a later offset is asked for, it is delivered again."""

    update_id: int
    message: TelegramMessage | None = None
    callback_query: CallbackQuery | None = None


class Hints(msgspec.Struct, frozen=True):
    """What the API says besides the reason of a refusal."""

    retry_after: int = 0
    migrate_to_chat_id: int = 0


class _Reply(msgspec.Struct, frozen=True):
    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: Hints = Hints()


class TelegramError(Exception):
    """A request that was not carried out, or of which that is not known. The message is for people."""


class NotSent(TelegramError):
    """It never reached the API."""


class Unanswered(TelegramError):
    """Whether the API carried it out is not known."""


class Refused(TelegramError):
    """The API says no, so it was not carried out."""

    def __init__(self, status: int, reason: str, hints: Hints) -> None:
        super().__init__(f"Telegram answered {status}: {reason}")
        self.status = status
        self.reason = reason
        self.hints = hints

    @property
    def is_token(self) -> bool:
        """Whether it refuses the token: 401 for one that was revoked, 404 for one that never was one."""
        return self.status in (401, 404) and self.reason in ("Unauthorized", "Not Found")


class BotAddress(NamedTuple):
    """Where the API is, and who the bot is. Two with the same values share their connections."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"BotAddress({self.url})"


class BotApi:
    """Requests of one bot, kept within the limits of the API."""

    def __init__(self, address: BotAddress, timings: TelegramTimings = USUAL.telegram) -> None:
        self.address = address
        self._host = urlsplit(address.url).netloc
        self._pool: AsyncConnectionPool | None = None
        self._timings = timings
        self._next: dict[int, float] = {}
        """When each chat may get its next message."""
        self._next_of_all = 0.0

    async def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            await self._pool.aclose()

    async def get_me(self) -> User:
        """Return the bot's own account."""
        return msgspec.json.decode(await self._call("getMe", {}), type=User)

    async def get_updates(self, *, offset: int) -> list[msgspec.Raw]:
        """Wait for updates from this offset on. Those before it are confirmed: they are not delivered again."""
        wait = self._timings.poll
        asked = {"offset": offset, "timeout": int(wait), "allowed_updates": ["message", "callback_query"]}
        return msgspec.json.decode(await self._call("getUpdates", asked, wait=wait), type=list[msgspec.Raw])

    async def send_message(self, content: dict[str, Any]) -> TelegramMessage:
        """Send a message, and return it as it is in the chat."""
        return msgspec.json.decode(await self._call("sendMessage", content), type=TelegramMessage)

    async def edit_message(self, content: dict[str, Any]) -> None:
        """Change the text and the buttons of a message. Doing it twice is as good as once."""
        try:
            await self._call("editMessageText", content)
        except Refused as error:
            if "message is not modified" not in error.reason:
                raise

    async def answer_press(self, query: str, text: str, *, alert: bool) -> None:
        """Show a text to the person who pressed a button. It may come too late to be seen."""
        await self._call("answerCallbackQuery", {"callback_query_id": query, "text": text[:200], "show_alert": alert})

    async def set_commands(self, commands: dict[str, str]) -> None:
        """Offer these commands in the menu of every chat."""
        listed = [{"command": name, "description": does} for name, does in commands.items()]
        await self._call("setMyCommands", {"commands": listed})

    async def wait_for_turn(self, chat: int) -> None:
        """Return when a message to this chat is within the limits: one a second, and fewer to a group."""
        now = asyncio.get_running_loop().time()
        at = max(now, self._next_of_all, self._next.get(chat, 0.0))
        self._next = {known: until for known, until in self._next.items() if until > now}
        self._next[chat] = at + (self._timings.between_messages if chat > 0 else self._timings.between_group_messages)
        self._next_of_all = max(now, self._next_of_all) + self._timings.between_all
        await asyncio.sleep(at - now)

    async def _call(self, method: str, content: dict[str, Any], *, wait: float = 0.0) -> msgspec.Raw:
        """Post a request and return the result. TelegramError if there is none."""
        if self._pool is None:
            self._pool = connection_pool(allow_private=self.address.url != PUBLIC_API)
        url = f"{self.address.url}/bot{self.address.token}/{method}"
        headers = [(b"host", self._host.encode()), (b"content-type", b"application/json"), (b"user-agent", b"holdfast")]
        limits = {"connect": SECONDS, "read": SECONDS + wait, "write": SECONDS, "pool": SECONDS}
        try:
            answer = await self._pool.request(
                "POST", url, headers=headers, content=msgspec.json.encode(content), extensions={"timeout": limits}
            )
        except (ConnectError, ConnectTimeout, PoolTimeout, OSError) as error:
            raise NotSent(f"{self._host} cannot be reached: {failure_words(error)}.") from None
        except TimeoutException:
            raise Unanswered(f"{self._host} did not answer within {SECONDS + wait:.0f} s.") from None
        except (NetworkError, ProtocolError) as error:
            raise Unanswered(f"The connection to {self._host} broke: {failure_words(error)}.") from None
        return self._result(answer.status, answer.content)

    def _result(self, status: int, body: bytes) -> msgspec.Raw:
        try:
            reply = msgspec.json.decode(body, type=_Reply)
        except msgspec.DecodeError:
            raise Unanswered(f"{self._host} answered {status} with something that is not of the Bot API.") from None
        if not reply.ok:
            reason = reply.description.removeprefix("Bad Request: ").removeprefix("Forbidden: ")
            raise Refused(reply.error_code or status, reason.replace(self.address.token, "…"), reply.parameters)
        return reply.result
