"""Errors as what they are: a code, words for a person, and whether it may be tried again."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from holdfast.models.provider import Provider, ProviderModel
from tests.eventually import PATIENCE
from tests.provider.asking import KEY, ask, asking, provider, refused
from tests.provider.loopback import (
    Answer,
    Call,
    Cut,
    Fail,
    Garbage,
    Hang,
    Loopback,
    Pause,
    Raw,
    Reply,
    Silence,
    Text,
    Wire,
)

HALF = 'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n'
REFUSAL = 'data: {"choices": [{"index": 0, "delta": {"refusal": "I will not."}}]}\n\n'
CALLS = '"choices": [{"delta": {"tool_calls": [{"index": 0, "function": 5}]}}]'
RUBBISH = f'event: content_block_start\ndata: {{"type": "content_block_start", "content_block": 5, {CALLS}}}\n\n'
UPSTREAM = {"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "the GPU is on fire"}}}
TOO_LONG = [
    (400, "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    (400, "Input is too long for requested model."),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    (400, "`inputs` tokens + `max_new_tokens` must be <= 4097"),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081"),
    (400, "Please reduce the length of the messages or completion."),
    (400, "Your request exceeded model token limit: 8192"),
    (422, "input length exceeds the context length"),
    (500, "Trying to keep the first 5000 tokens when the context overflows"),
    (413, "Request body too large for gpt-4o model. Max size: 8000 tokens."),
    (429, "Request too large for gpt-4 on tokens per min (TPM): Limit 10000, Requested 12000."),
]
"""The words of many servers."""
BOTH: list[tuple[str, Answer, str, bool]] = [
    ("401", Fail(401, f"Incorrect API key provided: {KEY}"), "wrong_key", False),
    ("403", Fail(403, "your key may not do that"), "wrong_key", False),
    ("404", Fail(404, "model: loopback", code="model_not_found"), "unknown_model", False),
    ("402", Fail(402, "insufficient credits"), "quota", False),
    ("429", Fail(429, "slow down"), "rate_limit", True),
    ("500", Fail(500, "it broke"), "provider_down", True),
    ("503", Fail(503, "no capacity"), "provider_down", True),
    ("529", Fail(529, "Overloaded", code="overloaded_error"), "provider_down", True),
    ("an upstream", Fail(502, UPSTREAM), "provider_down", True),
    ("408", Fail(408, "too slow"), "network", True),
    ("413", Fail(413, "too large", code="request_too_large"), "context_too_long", False),
    ("llama-server", Fail(400, "the request exceeds the available context size"), "context_too_long", False),
    ("vllm", Fail(400, "This model's maximum context length is 8192 tokens."), "context_too_long", False),
    *((said[:30], Fail(status, said), "context_too_long", False) for status, said in TOO_LONG),
    ("a filter", Fail(400, "Output blocked by content filtering policy"), "refused", False),
    ("400", Fail(400, "temperature is not supported"), "rejected", False),
    ("a body without words", Fail(400, {"strange": True}), "rejected", False),
    ("stopped by a filter", Reply("I", finish="content_filter"), "refused", False),
    ("nothing", Reply(), "bad_answer", True),
    ("only blanks", Reply(" \n"), "bad_answer", True),
    ("an empty body", Garbage(""), "bad_answer", True),
    ("a page", Garbage("<html>Welcome to nginx!</html>", "text/html"), "bad_answer", True),
    ("an error with 200", Garbage('{"error": {"message": "no"}}', "application/json"), "bad_answer", True),
    ("rubbish", Garbage(RUBBISH), "bad_answer", True),
    ("a list", Garbage("event: message_start\ndata: [1]\n\n"), "bad_answer", True),
    ("no JSON", Garbage("event: message_start\ndata: rubbish\n\n"), "bad_answer", True),
    ("half a JSON", Reply("Hel", Raw(HALF)), "bad_answer", True),
    ("a cut stream", Reply(Text(["Hel", "lo"]), Cut()), "network", True),
    ("a stream that ends too early", Reply("Hel", Cut(politely=True)), "network", True),
    ("a call that is cut", Reply(Call("read", '{"a": 1}'), Cut(politely=True)), "network", True),
]


@pytest.mark.parametrize(("answer", "code", "retry"), [case[1:] for case in BOTH], ids=[case[0] for case in BOTH])
async def test_what_it_is(model: ProviderModel, server: Loopback, answer: Answer, code: str, *, retry: bool) -> None:
    server.script(answer)
    error = await refused(model)
    assert (error.problem.code, error.retry) == (code, retry), error.problem
    assert error.after_ms is None
    assert len(server.requests) == 1, "it was tried again behind our back"


@pytest.mark.parametrize(
    ("wire", "answer", "code"),
    [
        ("openai", Fail(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
        ("anthropic", Fail(400, "Your credit balance is too low", code="invalid_request_error"), "quota"),
        ("openai", Fail(400, "too many", code="context_length_exceeded"), "context_too_long"),
        ("anthropic", Fail(400, "prompt is too long: 9 > 8", code="invalid_request_error"), "context_too_long"),
        ("openai", Garbage('data: {"error": {"message": "no", "type": "server_error"}}\n\n'), "provider_down"),
        (
            "openai",
            Garbage('data: {"error": {"message": "no", "code": "context_length_exceeded"}}\n\n'),
            "context_too_long",
        ),
        ("openai", Garbage('data: {"error": {"message": "who knows"}}\n\n'), "provider_down"),
        ("openai", Reply("Hel", finish="error"), "provider_down"),
        ("openai", Reply(Raw(REFUSAL)), "refused"),
        ("openai", Fail(403, {"error": {"message": "no", "metadata": {"reasons": ["violence"]}}}), "refused"),
        (
            "anthropic",
            Reply("Hel", Raw('event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n')),
            "provider_down",
        ),
    ],
)
async def test_what_only_one_of_them_says(server: Loopback, wire: Wire, answer: Answer, code: str) -> None:
    model = ProviderModel(provider(server, wire), "loopback")
    server.script(answer)
    assert (await refused(model)).problem.code == code
    await model.close()


async def test_a_wrong_key_names_where_it_comes_from(model: ProviderModel, server: Loopback) -> None:
    server.script(Fail(401, f"Incorrect API key provided: {KEY}"))
    problem = (await refused(model)).problem
    assert problem.message == "local does not accept the key: Incorrect API key provided: *** (401)"
    assert problem.hint.startswith(
        "Check the key of local, which comes from LOCAL_KEY; after a change run `holdfast restart`"
    )


async def test_the_message_is_short_and_on_one_line(model: ProviderModel, server: Loopback) -> None:
    server.script(Fail(500, "it\nbroke " * 1000))
    message = (await refused(model)).problem.message
    assert len(message) < 500
    assert "\n" not in message


async def test_what_a_provider_behind_the_provider_said(model: ProviderModel, server: Loopback) -> None:
    server.script(Fail(502, UPSTREAM))
    assert "the GPU is on fire" in (await refused(model)).problem.message


@pytest.mark.parametrize("key", ["sk-clé", "sk- with blanks", "sk-line\nbreak", "Bearer\tx"])
async def test_a_key_that_cannot_be_one_is_never_sent(server: Loopback, wire: Wire, key: str) -> None:
    model = ProviderModel(provider(server, wire, key=key), "loopback")
    problem = (await refused(model)).problem
    assert problem.code == "wrong_key"
    assert key not in f"{problem}"
    assert not server.requests


async def test_the_value_none_is_no_secret(server: Loopback, wire: Wire) -> None:
    model = ProviderModel(provider(server, wire, key="none"), "loopback")
    server.script(Fail(500, "none of the models is loaded"))
    assert "none of the models" in (await refused(model)).problem.message
    await model.close()


# --- when to try again --------------------------------------------------------------------------


async def test_a_rate_limit_with_seconds(model: ProviderModel, server: Loopback) -> None:
    server.script(Fail(429, "slow down", headers={"Retry-After": "7"}))
    error = await refused(model)
    assert (error.problem.code, error.retry, error.after_ms) == ("rate_limit", True, 7000)
    assert error.problem.message == "local limits the rate of requests: slow down (429). It asks to wait 7 s."


async def test_a_rate_limit_with_a_date(model: ProviderModel, server: Loopback) -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    server.script(Fail(429, "slow down", headers={"Retry-After": then}))
    error = await refused(model)
    assert error.after_ms is not None
    assert 80_000 < error.after_ms <= 90_000


async def test_a_date_in_the_past_is_now(model: ProviderModel, server: Loopback) -> None:
    server.script(Fail(429, "slow down", headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}))
    assert (await refused(model)).after_ms == 0


@pytest.mark.parametrize("value", ["soon", "-1", "", "1e999"])
async def test_a_nonsense_time_is_up_to_us(model: ProviderModel, server: Loopback, value: str) -> None:
    server.script(Fail(503, "busy", headers={"Retry-After": value}))
    error = await refused(model)
    assert (error.retry, error.after_ms) == (True, None)


@pytest.mark.parametrize(("seconds", "retry"), [(1800, True), (3600, True), (3601, False)])
async def test_a_quota_is_waited_for_when_it_is_soon_back(
    model: ProviderModel, server: Loopback, seconds: int, *, retry: bool
) -> None:
    server.script(Fail(402, "credits are used up", headers={"Retry-After": str(seconds)}))
    error = await refused(model)
    assert (error.problem.code, error.retry, error.after_ms) == ("quota", retry, seconds * 1000)


# --- the network --------------------------------------------------------------------------------


async def test_a_retry_after_of_a_day_fails_at_once(model: ProviderModel, server: Loopback) -> None:
    server.script(Fail(429, "slow down", headers={"Retry-After": "86400"}))
    error = await refused(model)
    assert (error.problem.code, error.retry) == ("rate_limit", False)
    assert "It asks to wait 86400 s." in error.problem.message


@pytest.mark.parametrize("flood", [Text(["x" * 500_000] * 10), Call("write", "x" * 5_000_000)])
async def test_an_answer_without_end_is_broken_off(model: ProviderModel, server: Loopback, flood: Text | Call) -> None:
    server.script(Reply(flood, Hang()))
    error = await refused(model)
    assert (error.problem.code, error.retry) == ("bad_answer", False)
    assert "longer than 4000000 characters" in error.problem.message


@pytest.mark.parametrize("answer", [Silence(), Reply(Hang()), Reply(Text(["Hel", "lo"]), Hang())])
async def test_a_provider_that_falls_silent(server: Loopback, wire: Wire, answer: Answer) -> None:
    model = ProviderModel(provider(server, wire), "loopback", idle_seconds=0.3)
    server.script(answer)
    error = await refused(model)
    assert (error.problem.code, error.retry) == ("network", True)
    assert error.problem.message == "The connection to 127.0.0.1 failed: no data for 0.3 s"
    await model.close()


PING = {"openai": ": still working\n\n", "anthropic": 'event: ping\ndata: {"type": "ping"}\n\n'}
EMPTY = 'data: {"choices": [{"index": 0, "delta": {"content": ""}}]}\n\n'


@pytest.mark.parametrize("said", [[], ["Hel", "lo"]])
async def test_keep_alives_are_no_text(server: Loopback, wire: Wire, said: list[str]) -> None:
    model = ProviderModel(replace(provider(server, wire), quiet_seconds=0.5), "loopback", idle_seconds=5)
    pings = [part for _ in range(1_000) for part in (Raw(PING[wire] + (EMPTY if wire == "openai" else "")), Pause(0.1))]
    server.script(Reply(*map(Text, said), *pings))
    error = await refused(model)
    assert (error.problem.code, error.retry) == ("network", True)
    assert error.problem.message == "The connection to 127.0.0.1 failed: only keep-alive signals for 0.5 s"
    server.wait(lambda found: found.left == 1)
    assert (await ask(model))[1].text
    await model.close()


class FastLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def heard(model: ProviderModel, *, pauses: dict[str, float]) -> str:
    """The last text that came. After some of them the clock goes forward by so many seconds."""
    loop = FastLoop()

    async def listen() -> str:
        last = ""
        async with aclosing(model.stream(asking())) as pieces:
            async for piece in pieces:
                last = piece.text
                loop.ahead += pauses.get(last, 0.0)
                await asyncio.sleep(0)
        await model.close()
        return last

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(listen())


def test_a_slow_listener_is_not_a_quiet_provider(server: Loopback, wire: Wire) -> None:
    model = ProviderModel(replace(provider(server, wire), quiet_seconds=PATIENCE), "loopback")
    server.script(Reply(Text(["a", "b", "c"])))
    assert heard(model, pauses={"a": 2 * PATIENCE}) == "abc"


def test_slow_is_not_silent(server: Loopback, wire: Wire) -> None:
    model = ProviderModel(provider(server, wire), "loopback", idle_seconds=PATIENCE)
    server.script(Reply(Text([*"abcdefgh"], delay=0.05)))
    assert heard(model, pauses=dict.fromkeys("abcdefgh", PATIENCE / 2)) == "abcdefgh"


async def test_nobody_listens(wire: Wire) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        model = ProviderModel(Provider("local", wire, url, KEY), "loopback")
        error = await refused(model)
    assert (error.problem.code, error.retry) == ("network", True)
    assert "127.0.0.1" in error.problem.message
    await model.close()


@pytest.mark.parametrize("url", ["http://[bad", "not an address", "ftp://127.0.0.1", "http://me:hunter22@127.0.0.1:1"])
async def test_an_address_that_is_none(wire: Wire, url: str) -> None:
    model = ProviderModel(Provider("local", wire, url, KEY), "loopback")
    problem = (await refused(model)).problem
    assert problem.code == "network"
    assert "hunter22" not in problem.message
    await model.close()


async def test_it_works_again_after_every_kind_of_failure(model: ProviderModel, server: Loopback) -> None:
    for answer in (Fail(500), Reply("Hel", Cut()), Garbage("data: x\n\n"), Fail(429)):
        server.script(answer, Reply("fine"))
        await refused(model)
        assert (await ask(model))[1].text == "fine"
