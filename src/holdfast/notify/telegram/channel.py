"""A chat of Telegram as a channel: answers, questions with buttons, and notices.

Telegram knows no ids of ours: a message that may have arrived is not sent again.
"""

from __future__ import annotations

from html import escape
from typing import Any, Protocol

from holdfast.domain.argument_words import argument_word
from holdfast.domain.errors import HoldfastError
from holdfast.domain.events.parts import ShownArgument
from holdfast.notify.channel import GiveUp, NoticeMessage, Result, Sent, TryAgain, Unsure
from holdfast.notify.markdown_parts import PART, units
from holdfast.notify.notices import IS_BLOCKED
from holdfast.notify.telegram.bot_api import BotApi, Refused, TelegramError, Unanswered
from holdfast.notify.telegram.formatting import as_html
from holdfast.secrets import Mask
from holdfast.store.contract import Store
from holdfast.store.outbox_store import IN_CONVERSATION
from holdfast.store.rows import TitledWait

APPROVALS = {"allow": "Once", "session": "This session", "deny": "Deny"}
LONGEST_LABEL = 60
ELSEWHERE = (
    "It is too long to be shown here as a whole. Allow it in the dashboard or with <code>holdfast answer</code>."
)


class Bot(Protocol):
    """What a chat needs of its bot."""

    def api(self) -> BotApi | None:
        """The client; None while there is no token."""
        ...

    @property
    def token_problem(self) -> str:
        """What is wrong with the token; empty when nothing is known to be."""
        ...


class TelegramChat:
    """One chat, or one topic of a group."""

    reports_settled = True
    repeatable = False

    def __init__(self, bot: Bot, store: Store, mask: Mask, *, chat: int, topic: int, details: bool) -> None:
        self._bot = bot
        self._store = store
        self._mask = mask
        self._chat = chat
        self._topic = topic
        self._details = details

    async def send(self, message: NoticeMessage) -> Result:
        """Send it, or change what was sent."""
        api = self._bot.api()
        if api is None:
            return TryAgain(self._bot.token_problem)
        content = await self._content(message)
        try:
            if message.kind == "settled":
                await api.edit_message(content | {"message_id": int(message.receipt)})
                return Sent(message.receipt)
            return Sent(str((await self._send(api, content)).message_id))
        except Refused as error:
            return TryAgain(str(error)) if error.is_token else refusal(error)
        except Unanswered as error:
            return TryAgain(str(error)) if message.kind == "settled" else Unsure(str(error))
        except TelegramError as error:
            return TryAgain(str(error))

    async def close(self) -> None:
        """The connections are the bot's."""

    async def _send(self, api: BotApi, content: dict[str, Any]) -> Any:
        topic = {"message_thread_id": self._topic} if self._topic else {}
        plain = content.pop("plain")
        try:
            return await api.send_message(content | topic)
        except Refused as error:
            if error.status != 400 or "parse entities" not in error.reason:
                raise
            del content["parse_mode"]
            return await api.send_message(content | topic | {"text": plain[:PART]})

    async def _content(self, message: NoticeMessage) -> dict[str, Any]:
        """The text, its form and its buttons; `plain` is the text for a Telegram that does not take the form."""
        buttons: list[list[dict[str, str]]] = []
        wait = await self._wait(message)
        if wait is not None and self._details:
            text, buttons = shown_wait(wait, self._mask)
            if message.kind == "settled":
                text, buttons = f"{text}\n\n<i>{escape(message.text, quote=False)}</i>", []
        elif message.kind in IN_CONVERSATION:
            text = as_html(message.detail)
        else:
            title, said = escape(message.title[:200], quote=False), escape(message.text[: PART // 2], quote=False)
            text = f"<b>{title}</b> {said}" + (f"\n{escape(message.url)}" if message.url else "")
            if message.text.startswith(IS_BLOCKED) and message.kind == "blocked":
                text += f"\n<code>/card unblock {escape(message.link.rpartition('/')[2])} ANSWER</code>"
        content: dict[str, Any] = {"chat_id": self._chat, "text": text, "parse_mode": "HTML"}
        content["link_preview_options"] = {"is_disabled": True}
        content["plain"] = message.detail if message.kind in IN_CONVERSATION else f"{message.title} {message.text}"
        if message.kind == "settled":
            del content["plain"]
        return content | {"reply_markup": {"inline_keyboard": buttons}}

    async def _wait(self, message: NoticeMessage) -> TitledWait | None:
        try:
            return await self._store.wait(message.wait) if message.wait else None
        except HoldfastError:  # its session was deleted
            return None


def refusal(error: Refused) -> Result:
    """Return what a refusal of a message means."""
    if error.status == 429:
        return TryAgain(str(error), after_ms=error.hints.retry_after * 1000)
    if error.status >= 500:
        return TryAgain(str(error))
    if error.status == 403:
        return GiveUp(str(error), hint="The bot was blocked or removed, or nobody has written to it there yet.")
    if error.hints.migrate_to_chat_id:
        return GiveUp(str(error), hint=f"The group has another number now: {error.hints.migrate_to_chat_id}.")
    return GiveUp(str(error))


# --- questions and approvals ----------------------------------------------------------------------


def choices(wait: TitledWait) -> dict[str, str]:
    """Return the answers that have a button, each with the words on it."""
    match wait.purpose:
        case "approval" if "allow" in wait.choices and "call" in wait.choices:
            return {answer: words for answer, words in APPROVALS.items() if answer in wait.choices}
        case "resume":
            return {"go on": "Go on"}
        case _:
            return {choice: choice for choice in wait.choices}


def shown_wait(wait: TitledWait, mask: Mask) -> tuple[str, list[list[dict[str, str]]]]:
    """Return a wait as a text with its buttons. Whatever is not shown as a whole cannot be allowed here."""
    plain = [wait.reason, *(f"{argument_word(one.name)}: {one.value}" for one in wait.shown)]
    lines = [escape(mask(wait.reason), quote=False)]
    lines += [_argument(one, mask) for one in wait.shown]
    if wait.pattern:
        lines.append(f"<i>This session</i> allows: <code>{escape(wait.pattern, quote=False)}</code>")
    whole = units("\n".join(plain)) <= PART and mask("\n".join(plain)) == "\n".join(plain)
    whole = whole and not any(one.left_out for one in wait.shown)
    offered = choices(wait) if wait.state == "open" else {}
    if wait.purpose == "approval" and not whole:
        offered = {answer: words for answer, words in offered.items() if answer == "deny"}
        cut = mask("\n".join(plain))[: PART // 2]
        lines = [escape(cut, quote=False), ELSEWHERE]
    elif not whole:
        lines = [escape(mask(wait.reason)[: PART // 2], quote=False) + " …"]
    order = list(choices(wait))
    buttons = [
        {"text": words[:LONGEST_LABEL], "callback_data": f"{wait.id} {order.index(answer)}"}
        for answer, words in offered.items()
    ]
    if wait.purpose == "question" and wait.state == "open" and not buttons:
        lines.append("<i>Write your answer.</i>")
    return "\n".join(lines), [buttons] if wait.purpose == "approval" else [[button] for button in buttons]


def _argument(one: ShownArgument, mask: Mask) -> str:
    name, value = f"<b>{escape(argument_word(one.name))}</b>", escape(mask(one.value), quote=False)
    long = "\n" in one.value or len(one.value) > LONGEST_LABEL
    shown = f"{name}\n<pre>{value}</pre>" if long else f"{name} <code>{value}</code>"
    if one.left_out:
        return f"{shown} … {one.left_out} characters are not shown"
    return f"{shown} (default)" if one.usual else shown


def pressed(data: str) -> tuple[str, int] | None:
    """Return the wait and the place of the answer that a button sends; None if it is none of ours."""
    wait, _, place = data.partition(" ")
    return (wait, int(place)) if wait.isalnum() and place.isascii() and place.isdigit() else None
