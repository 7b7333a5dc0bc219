"""Apprise: what arrives, and the problem that is reported if nothing does. Its service is `json://` on this machine."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from io import StringIO

import pytest
from msgspec.structs import replace

from holdfast.notify.apprise import AppriseChannel
from holdfast.notify.channel import GiveUp, Sent, TryAgain
from holdfast.notify_settings import AppriseSettings
from tests.notify.conformance import MESSAGE, ChannelContract
from tests.notify.receiver import Receiver, receiver
from tests.notify.test_webhooks import ANSWERS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # those of Apprise when it is imported
CHANNEL = AppriseChannel(AppriseSettings(url_env="PAGER"))


def address(hook: Receiver) -> str:
    return f"json://me:hunter2@127.0.0.1:{hook.port}/hook"


class AppriseService:
    """A service that Apprise reaches as the other side of a channel. It gets no ids: its messages are told by order."""

    def __init__(self, hook: Receiver, stack: AsyncExitStack) -> None:
        self._hook = hook
        self._stack = stack

    def channel(self) -> AppriseChannel:
        return CHANNEL

    def ids(self) -> list[str]:
        return [MESSAGE.id for request in self._hook.requests if request.json["title"] == MESSAGE.title]

    def answer(self, what: str) -> None:
        self._hook.answer = lambda _: ANSWERS[what]

    async def go_away(self) -> None:
        await self._stack.aclose()


class TestApprise(ChannelContract):
    knows_pauses = False

    @pytest.fixture
    async def service(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AppriseService]:
        async with AsyncExitStack() as stack:
            hook = await stack.enter_async_context(receiver())
            monkeypatch.setenv("PAGER", address(hook))
            yield AppriseService(hook, stack)


async def test_title_text_and_link_arrive_and_nobody_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as hook:
        monkeypatch.setenv("PAGER", address(hook))
        text = "asks: @everyone, <!channel> and <@U123>, mail a@b.c at 3 < 4"
        assert isinstance(await CHANNEL.send(replace(MESSAGE, text=text)), Sent)
    (request,) = hook.requests
    assert request.json["title"] == MESSAGE.title
    said = request.json["message"]
    assert said.replace("\u200b", "") == f"{text}\n{MESSAGE.url}"
    assert not any(mention in said for mention in ("@everyone", "<!channel", "<@U123"))


async def test_redirects_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as hook, receiver() as elsewhere:
        monkeypatch.setenv("PAGER", address(hook))
        hook.answer = lambda _: (307, f"location: {elsewhere.url}\r\n")
        result = await CHANNEL.send(MESSAGE)
    assert isinstance(result, GiveUp)
    assert result.problem == "It answered 307."
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "PAGER is not set in the environment of the gateway."),
        ("nonsense://hunter2@host", "PAGER is no address that Apprise understands."),
        ("hunter2", "PAGER is no address that Apprise understands."),
        ("json://me:hunter2@127.0.0.1:1/hook", "The service cannot be reached, or did not take it"),
    ],
)
async def test_what_is_wrong_is_said_without_the_address(
    monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    monkeypatch.setenv("PAGER", value)
    logged = StringIO()
    handler = logging.StreamHandler(logged)  # as the gateway has one
    logging.getLogger().addHandler(handler)
    result = await CHANNEL.send(MESSAGE)
    logging.getLogger().removeHandler(handler)
    assert isinstance(result, TryAgain)
    assert said in result.problem
    assert "hunter2" not in result.problem + logged.getvalue()


async def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "json://host")
    monkeypatch.setitem(sys.modules, "apprise", None)
    result = await CHANNEL.send(MESSAGE)
    assert isinstance(result, TryAgain)
    assert "pip install 'holdfast[apprise]'" in result.problem
