"""What happens in the chats of the bot: asks for updates, and has each carried out once.

An update is confirmed, by asking for the next one, only after what it causes was committed. After a crash it is
delivered again; its command has the same id then, and so has the answer in the outbox.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import NoReturn

import msgspec

from holdfast.clock import Clock, SystemClock
from holdfast.domain.errors import HoldfastError, Unavailable
from holdfast.notify.chat_commands import VERBS, ChatCommands, ChatInput, ChatReply
from holdfast.notify.markdown_parts import PART
from holdfast.notify.sender import OutboxSender
from holdfast.notify.telegram.bot import STRANGER, TelegramBot, chat_name
from holdfast.notify.telegram.bot_api import (
    BotApi,
    CallbackQuery,
    Refused,
    TelegramError,
    TelegramMessage,
    Update,
    User,
)
from holdfast.notify.telegram.channel import choices, pressed
from holdfast.notify.telegram.people import HOUR_MS, MOST_STRANGERS, actor_of, name_of, pairing_code
from holdfast.periodic import FollowerState
from holdfast.store.contract import Store
from holdfast.store.log_follower import growing_pause
from holdfast.store.outbox_store import DeliveryRow, delivery_id
from holdfast.store.rows import TitledWait
from holdfast.timings import TelegramTimings

TRIES = 3
"""How often an update is tried that fails unexpectedly; then the next ones get their turn."""
ONLY_TEXT = "Only text is understood here so far."
log = logging.getLogger(__name__)


class UpdateId(msgspec.Struct, frozen=True):
    """As much of an update as is needed to leave it behind."""

    update_id: int


class TelegramUpdates:
    """Asks for updates as long as the bot is set up."""

    def __init__(
        self,
        bot: TelegramBot,
        commands: ChatCommands,
        store: Store,
        sender: OutboxSender,
        *,
        clock: Clock,
        timings: TelegramTimings,
    ) -> None:
        self.state = FollowerState("Telegram")
        self._bot = bot
        self._commands = commands
        self._store = store
        self._sender = sender
        self._clock = clock
        self._timings = timings
        self._task: asyncio.Task[NoReturn] | None = None
        self._failed: tuple[int, int] = (0, 0)
        """An update that fails unexpectedly, and how often it did."""
        self.strangers: dict[int, tuple[str, int]] = {}
        """Who asked to be let in: the name, and when."""
        self.account: User | None = None
        """The bot's own account, once it is known."""

    def start(self) -> None:
        """From now on."""
        self._task = asyncio.create_task(self._run(), name="Telegram")

    async def stop(self) -> None:
        """Until the next start. What was not confirmed is delivered again then."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> NoReturn:
        known: BotApi | None = None
        offset = failures = 0
        while True:
            api = self._bot.api()
            if api is None:
                known = None
                self._note(self._bot.token_problem if self._bot.is_on else "")
                await asyncio.sleep(self._timings.look)
                continue
            pause = 0.0
            try:
                if api is not known:
                    await self._greet(api)
                    known, offset = api, 0
                for raw in await api.get_updates(offset=offset):
                    offset = await self._take(api, raw) + 1
                failures = 0
                self._note("")
            except TelegramError as error:
                failures += 1
                pause = self._after(error) or growing_pause(failures, first=self._timings.retry)
                self._note(self._words(error))
            except Exception as error:
                failures += 1
                pause = growing_pause(failures, first=self._timings.retry)
                self._note(f"an update is tried again: {error}")
                log.warning("an update of Telegram is tried again", exc_info=not isinstance(error, HoldfastError))
            await asyncio.sleep(pause)

    async def _greet(self, api: BotApi) -> None:
        self.account = await api.get_me()
        log.info("Telegram: the bot is @%s", self.account.username)
        try:
            await api.set_commands({name: does.partition(":")[0] for name, does in VERBS.items()})
        except Refused as error:  # the menu is a convenience
            log.warning("the menu of the bot could not be set: %s", error)

    def _after(self, error: TelegramError) -> float:
        return float(error.hints.retry_after) if isinstance(error, Refused) else 0.0

    def _words(self, error: TelegramError) -> str:
        if not isinstance(error, Refused):
            return str(error)
        if error.is_token:
            return f"Telegram refuses the token in {self._bot.settings.token_env}: it is wrong or was revoked."
        if error.status == 409:
            return f"Another program uses the bot, or a webhook is set for it. {error}"
        return str(error)

    def _note(self, problem: str) -> None:
        if problem and problem != self.state.problem:
            log.warning("Telegram: %s", problem)
        if bool(problem) != bool(self.state.problem):
            self.state.since = SystemClock().now()
        self.state.problem = problem

    # --- one update -------------------------------------------------------------------------------

    async def _take(self, api: BotApi, raw: msgspec.Raw) -> int:
        """Carry out an update, return its id. What is no update of ours, or fails again and again, is left behind."""
        id = msgspec.json.decode(raw, type=UpdateId).update_id
        try:
            update = msgspec.json.decode(raw, type=Update)
        except msgspec.ValidationError as error:
            log.warning("an update of Telegram cannot be read and is left out: %s", error)
            return id
        try:
            if update.callback_query is not None:
                await self._press(api, update.update_id, update.callback_query)
            elif update.message is not None:
                await self._hear(update.update_id, update.message)
        except Unavailable:  # the disk takes no writes
            raise
        except Exception:
            tries = self._failed[1] + 1 if self._failed[0] == id else 1
            self._failed = (id, tries)
            if tries < TRIES:
                raise
            log.exception("an update of Telegram failed %d times and is left out", tries)
        return id

    async def _hear(self, update: int, message: TelegramMessage) -> None:
        sender, private = message.sender, message.chat.type == "private"
        if sender is None or sender.is_bot or message.chat.type not in ("private", "group", "supergroup"):
            return
        if sender.id not in self._bot.settings.allow:
            if private:
                await self._refer(sender, message.chat.id)
            return
        self._bot.names[sender.id] = name_of(sender)
        text = self._addressed(message.text)
        if not text and not private:  # somebody joined, or it is for another bot
            return
        chat = chat_name(message.chat.id, message.message_thread_id if message.is_topic_message else 0)
        incoming = self._incoming(update, f"{message.chat.id}/{message.message_id}", sender, chat, text)
        reply = await self._commands.say(incoming) if text else ChatReply(ONLY_TEXT)
        await self._reply(incoming, reply)

    def _addressed(self, text: str) -> str:
        """Return a text without the name of the bot; empty when it is for another one."""
        own = f"@{self.account.username}" if self.account is not None and self.account.username else ""
        first, *rest = text.strip().split(None, 1)[:2] or [""]
        if own and first.lower() == own.lower():
            return rest[0] if rest else "/help"
        verb, at, name = first.partition("@")
        if not first.startswith("/") or not at:
            return text
        return " ".join([verb, *rest]) if own and f"@{name}".lower() == own.lower() else ""

    def _incoming(self, update: int, subject: str, sender: User, chat: str, text: str) -> ChatInput:
        """The numbers of updates may start again from 1, so what it is about is part of the id."""
        bot = self._bot.settings.token().partition(":")[0]
        id = hashlib.sha256(f"{bot}/{update}/{subject}".encode()).hexdigest()[:32]
        approves = sender.id in self._bot.settings.approvers
        return ChatInput(f"telegram-{id}", chat, actor_of(sender), text, may_approve=approves)

    async def _refer(self, stranger: User, chat: int) -> None:
        """Give a stranger a code, once an hour, and a few of them at most. Nothing else of theirs is looked at."""
        now = self._clock.now()
        hour = now // HOUR_MS
        self.strangers = {id: known for id, known in self.strangers.items() if now - known[1] < HOUR_MS}
        if stranger.id not in self.strangers and len(self.strangers) >= MOST_STRANGERS:
            return
        self.strangers.setdefault(stranger.id, (name_of(stranger), now))
        code = pairing_code(self._bot.settings.token(), stranger.id, hour)
        text = (
            "I do not know you. If this is your Holdfast, run this on its machine within the hour:\n\n"
            f"```\nholdfast telegram pair {code}\n```\n"
            "With `--approve` at its end you can also answer approvals here."
        )
        await self._add(_reply_row(f"{STRANGER}:{chat}", f"pair/{hour}", text, now))

    async def welcome(self, person: int) -> None:
        """Send a message to somebody who was just let in."""
        now = self._clock.now()
        if known := self.strangers.pop(person, None):
            self._bot.names[person] = known[0]
        text = "You are let in: write to talk to the agent. /help lists what else there is."
        await self._add(_reply_row(chat_name(person), f"welcome/{now}", text, now))

    async def _press(self, api: BotApi, update: int, query: CallbackQuery) -> None:
        settings, person = self._bot.settings, query.sender.id
        found = pressed(query.data)
        if person not in settings.allow and person not in settings.approvers:
            said = "You may not answer this. Nothing has changed."
        elif found is None or query.message is None:
            said = "This button is no longer known."
        else:
            self._bot.names[person] = name_of(query.sender)
            message = query.message
            chat = chat_name(message.chat.id, message.message_thread_id if message.is_topic_message else 0)
            incoming = self._incoming(update, query.id, query.sender, chat, query.data)
            said = await self._answer(api, incoming, message, *found)
        try:
            await api.answer_press(query.id, said, alert="Nothing has changed" in said)
        except TelegramError as error:  # it is shown for a moment only, and what was answered is in the log
            log.info("the answer to a button was not shown: %s", error)

    async def _answer(self, api: BotApi, incoming: ChatInput, message: TelegramMessage, id: str, place: int) -> str:
        try:
            wait = await self._store.wait(id)
        except HoldfastError:
            return "This question no longer exists. Nothing has changed."
        if wait.state == "open":
            await self._note_arrival(incoming.chat, wait, message)
        else:
            await self._remove_buttons(api, wait, message)
        offered = list(choices(wait))
        if wait.id != id or place >= len(offered):
            return "This button is no longer known. Nothing has changed."
        return await self._commands.press(incoming, wait, offered[place])

    async def _note_arrival(self, chat: str, wait: TitledWait, message: TelegramMessage) -> None:
        """Whether it arrived may be unsure since a crash; a press proves it, and says which message it was."""
        for destination in (chat, f"telegram.{message.chat.id}"):
            earlier = await self._store.outbox.last_sent(destination, f"wait/{wait.session}")
            if earlier is not None and earlier.state == "unsure" and earlier.wait == wait.id:
                receipt = str(message.message_id)
                await self._store.outbox.mark(msgspec.structs.replace(earlier, state="sent", receipt=receipt, error=""))

    async def _remove_buttons(self, api: BotApi, wait: TitledWait, message: TelegramMessage) -> None:
        """They would be gone, had it been known that the message arrived."""
        how = f"answered by {wait.answered_by}: {wait.answer}" if wait.state == "answered" else "the turn is over"
        text = message.text if how in message.text else f"{message.text[:PART]}\n\n{how}"
        content = {"chat_id": message.chat.id, "message_id": message.message_id, "text": text}
        try:
            await api.edit_message(content | {"reply_markup": {"inline_keyboard": []}})
        except TelegramError as error:
            log.info("the buttons of a message could not be removed: %s", error)

    # --- answers ----------------------------------------------------------------------------------

    async def _reply(self, incoming: ChatInput, reply: ChatReply) -> None:
        now = self._clock.now()
        if reply.text:
            await self._add(_reply_row(incoming.chat, incoming.id, reply.text, now))
        for wait in reply.waits:
            row = _reply_row(incoming.chat, f"{incoming.id}/{wait.id}", wait.reason, now)
            await self._add(
                msgspec.structs.replace(
                    row,
                    matter=f"wait/{wait.session}",
                    kind="approval" if wait.purpose == "approval" else "question",
                    title=wait.title,
                    summary="is shown again",
                    link=f"/s/{wait.session}",
                    wait=wait.id,
                )
            )

    async def _add(self, row: DeliveryRow) -> None:
        await self._store.outbox.add(row)
        self._sender.wake()


def _reply_row(chat: str, matter: str, text: str, now: int) -> DeliveryRow:
    return DeliveryRow(
        id=delivery_id(chat, matter, 0, "reply"),
        destination=chat,
        matter=matter,
        kind="reply",
        seq=0,
        at=now,
        stream="",
        title="Telegram",
        summary="replies",
        detail=text,
        link="/",
        when_absent=False,
        due_at=now,
    )
