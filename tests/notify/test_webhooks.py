"""Webhooks: what is posted, how it is signed, and what each answer means."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from msgspec.structs import replace
from standardwebhooks import Webhook as Verifier

from holdfast.notify.channel import GiveUp, Sent, TryAgain
from holdfast.notify.webhooks import Webhook, request_of
from holdfast.notify_settings import WebhookSettings
from tests.notify.conformance import MESSAGE, ChannelContract
from tests.notify.receiver import Receiver, receiver

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two characters").decode()
ANSWERS = {
    "ok": (204, ""),
    "busy": (429, "retry-after: 7\r\n"),
    "broken": (500, ""),
    "refused": (404, ""),
    "nonsense": (99, ""),
}


class HookService:
    """A receiver of webhooks as the other side of a channel."""

    def __init__(self, hook: Receiver, stack: AsyncExitStack) -> None:
        self._hook = hook
        self._stack = stack

    def channel(self) -> Webhook:
        return Webhook(WebhookSettings(url=self._hook.url, allow_private=True, secret_env="HOOK_SECRET"))

    def ids(self) -> list[str]:
        return [request.headers["webhook-id"] for request in self._hook.requests]

    def answer(self, what: str) -> None:
        self._hook.answer = lambda _: ANSWERS[what]

    async def go_away(self) -> None:
        await self._stack.aclose()


class TestWebhook(ChannelContract):
    @pytest.fixture
    async def service(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HookService]:
        monkeypatch.setenv("HOOK_SECRET", SECRET)
        async with AsyncExitStack() as stack:
            yield HookService(await stack.enter_async_context(receiver()), stack)


async def test_a_receiver_with_the_library_of_the_convention_verifies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    async with receiver() as hook:
        channel = Webhook(WebhookSettings(url=hook.url, allow_private=True, secret_env="HOOK_SECRET"))
        assert await channel.send(MESSAGE) == Sent()
        assert await channel.send(MESSAGE) == Sent()
        await channel.close()
    first, second = hook.requests
    assert first.path == "/hook"
    found = Verifier(SECRET).verify(first.content, first.headers)
    assert found["type"] == "notice.question"
    assert found["timestamp"] == "2023-11-14T22:13:20.000+00:00"
    assert found["data"]["title"] == "Fix <the> build"
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == MESSAGE.id, "the same at every try"


@pytest.mark.parametrize("value", ["", "whsec_!", "no secret at all"])
async def test_without_a_usable_secret_it_waits_for_one(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", value)
    async with receiver() as hook:
        channel = Webhook(WebhookSettings(url=hook.url, allow_private=True, secret_env="HOOK_SECRET"))
        result = await channel.send(MESSAGE)
        await channel.close()
    assert isinstance(result, TryAgain)
    assert "HOOK_SECRET" in result.problem
    assert not value or value not in result.problem
    assert hook.requests == []


@pytest.mark.parametrize(
    ("status", "header", "expected"),
    [
        (200, "", Sent()),
        (204, "", Sent()),
        (500, "", TryAgain("It answered 500.")),
        (503, "retry-after: 120\r\n", TryAgain("It answered 503.", after_ms=120_000)),
        (429, "retry-after: 7\r\n", TryAgain("It answered 429.", after_ms=7_000)),
        (429, "retry-after: nonsense\r\n", TryAgain("It answered 429.")),
        (429, "retry-after: Mon, 01 Jan 2001 00:00:00 GMT\r\n", TryAgain("It answered 429.")),
        (408, "", TryAgain("It answered 408.")),
    ],
)
async def test_what_an_answer_means(status: int, header: str, expected: object) -> None:
    async with receiver() as hook:
        hook.answer = lambda _: (status, header)
        channel = Webhook(WebhookSettings(url=hook.url, allow_private=True))
        assert await channel.send(MESSAGE) == expected
        await channel.close()


@pytest.mark.parametrize("status", [400, 401, 404, 410, 301, 302, 307])
async def test_what_is_given_up(status: int) -> None:
    async with receiver() as other, receiver() as hook:
        hook.answer = lambda _: (status, f"location: {other.url}\r\n")
        channel = Webhook(WebhookSettings(url=hook.url, allow_private=True))
        result = await channel.send(MESSAGE)
        await channel.close()
    assert isinstance(result, GiveUp)
    assert str(status) in result.problem
    assert ("redirects are not followed" in result.problem) == (300 <= status <= 399)
    assert other.requests == [], "redirects are not followed"


async def test_a_private_address_is_refused_unless_it_is_allowed() -> None:
    async with receiver() as hook:
        channel = Webhook(WebhookSettings(url=hook.url.replace("http:", "https:")))
        result = await channel.send(MESSAGE)
        await channel.close()
    assert isinstance(result, GiveUp)
    assert "not a public address" in result.problem
    assert "allow_private" in result.hint
    assert hook.requests == []


async def test_an_address_that_is_a_secret_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = Webhook(WebhookSettings(url_env="HOOK_URL", allow_private=True))
    for value, said in (("", "HOOK_URL is not set"), ("ftp://secret", "HOOK_URL is no address")):
        monkeypatch.setenv("HOOK_URL", value)
        result = await channel.send(MESSAGE)
        assert isinstance(result, TryAgain)
        assert said in result.problem
        assert "secret" not in result.problem
    async with receiver() as hook:
        monkeypatch.setenv("HOOK_URL", hook.url)
        assert await channel.send(MESSAGE) == Sent()
        await channel.close()


def test_slack_gets_no_mention_and_no_markup_of_others() -> None:
    message = replace(MESSAGE, text="<!channel> look")
    body = request_of(message, "https://hooks.slack.com/x", "slack")
    assert json.loads(body.content) == {
        "text": "*Fix &lt;the&gt; build* &lt;!channel&gt; look <https://example.com/s/a|Open>",
        "unfurl_links": False,
        "unfurl_media": False,
    }


def test_discord_mentions_nobody() -> None:
    message = replace(MESSAGE, text="@everyone " + "x" * 3000)
    found = json.loads(request_of(message, "https://discord.com/x", "discord").content)
    assert found["allowed_mentions"] == {"parse": []}
    assert len(found["content"]) == 2000


def test_discord_shows_no_markup_of_others_and_looks_at_no_page() -> None:
    message = replace(MESSAGE, title="[Approve](https://evil.example)", text="**now** <#1>")
    found = json.loads(request_of(message, "https://discord.com/x", "discord").content)
    said = r"**\[Approve\]\(https://evil.example\)** \*\*now\*\* \<\#1\> https://example.com/s/a"
    assert (found["content"], found["flags"]) == (said, 4)


def test_ntfy_gets_its_topic_and_a_link() -> None:
    body = request_of(MESSAGE, "https://ntfy.sh/my-topic", "ntfy")
    assert body.url == "https://ntfy.sh/"
    assert json.loads(body.content) == {
        "topic": "my-topic",
        "title": "Fix <the> build",
        "message": "asks a question: which & why?",
        "click": "https://example.com/s/a",
    }
