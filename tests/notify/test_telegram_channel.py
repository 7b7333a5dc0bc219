"""A chat of Telegram as a channel: what is sent, and what each answer of the API means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.notify.channel import GiveUp, Sent, TryAgain, Unsure
from holdfast.notify.markdown_parts import PART, split_markdown, units
from holdfast.notify.telegram.bot_api import BotAddress, BotApi, NotSent, Refused, Unanswered
from holdfast.notify.telegram.channel import TelegramChat
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import TelegramTimings
from tests.notify.bot_api_server import CUT, TOKEN, Answer, BotApiServer, bot_api, refused
from tests.notify.conformance import MESSAGE, ChannelContract, Service
from tests.notify.telegram_rig import QUICK, api

__all__ = ["api"]
ANSWERS: dict[str, Answer] = {
    "ok": None,
    "busy": refused(429, "Too Many Requests: retry after 7", retry_after=7),
    "broken": refused(500, "Internal Server Error"),
    "refused": refused(403, "Forbidden: bot was blocked by the user"),
    "nonsense": (502, b"<html>Bad Gateway</html>"),
}


class OneBot:
    """A bot whose token is known."""

    token_problem = ""

    def __init__(self, api: BotApiServer, token: str = TOKEN) -> None:
        self._api = BotApi(BotAddress(api.url, token), QUICK)

    def api(self) -> BotApi:
        return self._api


class ChatService:
    """A Bot API server as the other side of a channel."""

    def __init__(self, api: BotApiServer, stack: ExitStack, store: SqliteStore) -> None:
        self._api = api
        self.bot = OneBot(api)
        self._stack = stack
        self._store = store

    def channel(self) -> TelegramChat:
        return TelegramChat(self.bot, self._store, str, chat=42, topic=0, details=True)

    def ids(self) -> list[str]:
        return ["" for _ in self._api.sent(42)]

    def answer(self, what: str) -> None:
        self._api.answer = lambda _, __: ANSWERS[what]

    async def go_away(self) -> None:
        await asyncio.to_thread(self._stack.close)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = SqliteStore(tmp_path / "holdfast.db")
    yield found
    await found.close()


class TestTelegram(ChannelContract):
    @pytest.fixture
    async def service(self, store: SqliteStore) -> AsyncIterator[ChatService]:
        with ExitStack() as stack:
            found = ChatService(stack.enter_context(bot_api()), stack, store)
            yield found
            await found.bot.api().close()

    async def test_every_kind_of_message_and_every_text_is_taken(self, service: Service) -> None:
        """A notice that is settled needs the message that it settles."""
        channel = service.channel()
        sent = await channel.send(MESSAGE)
        assert isinstance(sent, Sent)
        text = "x" * 5_000 + " <b>&amp;*_`[]()~>#+-=|{}.! \u202e\U0001f600\n\n" + "y" * 100
        for kind in ("approval", "done", "failed", "digest", "test", "answer", "reply"):
            message = replace(MESSAGE, kind=kind, title=text[:200], text=text, detail=split_markdown(text)[-1])
            assert isinstance(await channel.send(message), Sent), kind
        settled = replace(MESSAGE, kind="settled", text=text, receipt=sent.receipt)
        for _ in range(2):  # what is changed already stays as it is
            assert await channel.send(settled) == sent


@pytest.fixture
async def chat(api: BotApiServer, store: SqliteStore) -> AsyncIterator[TelegramChat]:
    bot = OneBot(api)
    yield TelegramChat(bot, store, str, chat=42, topic=0, details=True)
    await bot.api().close()


ANSWER = replace(MESSAGE, kind="answer", detail="**Done**: see `a < b`.\n\n```python\nprint('<&>')\n```\n- one\n- two")


async def test_markdown_is_shown_as_it_is_meant(api: BotApiServer, chat: TelegramChat) -> None:
    assert isinstance(await chat.send(ANSWER), Sent)
    (message,) = api.sent()
    assert message["sent"] == (
        "<b>Done</b>: see <code>a &lt; b</code>.\n\n"
        "<pre><code class=\"language-python\">print('&lt;&amp;&gt;')</code></pre>\n\n• one\n• two"
    )


async def test_a_blocked_card_says_how_to_answer_and_a_review_does_not(api: BotApiServer, chat: TelegramChat) -> None:
    for text in ("is blocked: Shall I?", "waits for a review: Done"):
        await chat.send(
            replace(MESSAGE, kind="blocked", title="HF-7 Deploy", text=text, link="/board/default/HF-7", url="")
        )
    blocked, review = api.texts()
    assert blocked.endswith("is blocked: Shall I?\n/card unblock HF-7 ANSWER")
    assert "unblock" not in review


async def test_what_telegram_cannot_parse_is_sent_as_plain_text(api: BotApiServer, chat: TelegramChat) -> None:
    api.answer = lambda _, content: (
        refused(400, "Bad Request: can't parse entities: Unsupported start tag") if "parse_mode" in content else None
    )
    assert isinstance(await chat.send(ANSWER), Sent)
    assert api.texts() == [ANSWER.detail]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (refused(429, "Too Many Requests"), TryAgain),
        (refused(502, "Bad Gateway"), TryAgain),
        (refused(401, "Unauthorized"), TryAgain),
        (refused(404, "Not Found"), TryAgain),
        (refused(400, "Bad Request: chat not found"), GiveUp),
        (refused(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-1009), GiveUp),
        ((CUT, b""), Unsure),
        ((200, b"{"), Unsure),
        ((200, b"[]"), Unsure),
        ((504, b"Gateway Timeout"), Unsure),
    ],
)
async def test_what_an_answer_means(api: BotApiServer, chat: TelegramChat, answer: Answer, expected: type) -> None:
    api.answer = lambda _, __: answer
    result = await chat.send(ANSWER)
    assert isinstance(result, expected)
    assert TOKEN not in repr(result)


async def test_a_message_that_arrived_without_an_answer_is_not_sent_again(
    api: BotApiServer, chat: TelegramChat
) -> None:
    api.after = lambda _, __: (CUT, b"")
    assert isinstance(await chat.send(ANSWER), Unsure)
    assert len(api.sent()) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [((CUT, b""), Unanswered), ((200, b"nonsense"), Unanswered), (refused(400, f"no {TOKEN}"), Refused)],
)
async def test_no_error_has_the_token(api: BotApiServer, answer: Answer, error: type[Exception]) -> None:
    api.answer = lambda _, __: answer
    client = OneBot(api).api()
    with pytest.raises(error) as found:
        await client.get_me()
    await client.close()
    assert TOKEN not in str(found.value) and found.value.__cause__ is None and TOKEN not in repr(client.address)


async def test_what_never_left_is_known_not_to_have(api: BotApiServer) -> None:
    client = BotApi(BotAddress("http://127.0.0.1:9", TOKEN), QUICK)
    with pytest.raises(NotSent):
        await client.get_me()
    await client.close()


async def test_the_limits_of_the_api_are_kept(api: BotApiServer) -> None:
    """The moments at which messages may be sent, as the loop would wait for them."""
    client = BotApi(BotAddress(api.url, TOKEN), TelegramTimings())
    moments: list[tuple[int, float]] = []

    async def send(chat: int) -> None:
        begin = asyncio.get_running_loop().time()
        waiting = asyncio.create_task(client.wait_for_turn(chat))
        await asyncio.sleep(0)
        moments.append((chat, client._next[chat]))
        waiting.cancel()
        assert client._next[chat] >= begin

    for chat in (1, 1, 1, -5, -5, 2):
        await send(chat)
    of_one = [at for chat, at in moments if chat == 1]
    assert [round(b - a, 2) for a, b in pairwise(of_one)] == [1.0, 1.0]
    of_group = [at for chat, at in moments if chat == -5]
    assert round(of_group[1] - of_group[0], 2) == 3.0
    for chat in range(100, 160):
        await send(chat)
    begin = client._next[100] - 1.0
    assert client._next[159] - 1.0 - begin >= 59 / 31, "at most 30 a second"


# --- parts of a long answer ----------------------------------------------------------------------------


def test_a_block_of_code_that_is_cut_is_closed_and_opened_again() -> None:
    text = "Before\n\n```python\n" + "\n".join(f"line({n})" for n in range(1000)) + "\n```\nafter"
    parts = split_markdown(text)
    assert len(parts) > 2
    for part in parts:
        assert units(part) <= 4096
        assert part.count("```") % 2 == 0
    assert all(part.startswith("```python\n") for part in parts[1:])
    assert [int(line[5:-1]) for part in parts for line in part.split("\n") if line.startswith("line(")] == [
        *range(1000)
    ]


def test_it_is_cut_between_paragraphs() -> None:
    paragraphs = [f"{n} " + "word " * 150 for n in range(20)]
    parts = split_markdown("\n\n".join(paragraphs))
    assert all(part.split(" ")[0].isdigit() for part in parts)


@pytest.mark.parametrize(
    "text",
    ["", "   \n", "a", "🦊" * 5000, "x" * 20_000, "```\n" * 3000, "~~~~\n" + "y\n" * 5000, "\n" * 9000, "a b " * 9000],
)
def test_every_part_fits_and_nothing_is_lost(text: str) -> None:
    parts = split_markdown(text)
    assert all(units(part) <= 4096 and part.strip() for part in parts)
    kept = "".join(parts)
    assert all(kept.count(sign) >= text.count(sign) for sign in "🦊xyab")
    assert PART < 4096
