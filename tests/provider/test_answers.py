"""What comes out of the port when the provider answers."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from holdfast.domain.history import ToolResult, UserMessage
from holdfast.models.model import ModelDelta, WantedCall
from holdfast.models.provider import ProviderModel
from tests.eventually import PATIENCE
from tests.provider.asking import HELLO, ask, asking, provider, refused, said, sent
from tests.provider.loopback import Call, Loopback, Pause, Reply, Text, Think, Wire


def text_of(deltas: list[ModelDelta]) -> str:
    return "".join(delta.text for delta in deltas)


def thinking_of(deltas: list[ModelDelta]) -> str:
    return "".join(delta.thinking for delta in deltas)


async def test_text_comes_in_pieces_and_then_as_a_whole(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Text(["Hel", "lo ", "Jürgen 🙂"])))
    deltas, answer = await ask(model)
    assert deltas == [ModelDelta("Hel"), ModelDelta("lo "), ModelDelta("Jürgen 🙂")]
    assert answer.text == "Hello Jürgen 🙂"
    assert answer.finish_reason == "stop"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (11, 7)
    assert answer.usage.cost is None


async def test_pieces_are_passed_on_when_they_come(model: ProviderModel, server: Loopback) -> None:
    """The second one is not even sent before the first one is here."""
    heard = threading.Event()
    server.script(Reply(Text("one "), Pause(until=heard), Text("two")))
    async with asyncio.timeout(PATIENCE):
        async for _ in model.stream(asking()):
            heard.set()


async def test_the_name_is_the_provider_and_the_model(model: ProviderModel) -> None:
    assert model.name == "local:loopback"


async def test_parallel_calls_keep_their_order(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply("Let me see.", Call("read", {"path": "a"}), Call("write", {"path": "b", "n": 1})))
    deltas, answer = await ask(model)
    assert text_of(deltas) == answer.text == "Let me see."
    assert [(call.tool, json.loads(call.arguments)) for call in answer.calls] == [
        ("read", {"path": "a"}),
        ("write", {"path": "b", "n": 1}),
    ]
    assert answer.finish_reason == "tool_calls"


async def test_a_call_without_arguments_has_an_empty_object(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Call("list", "")))
    assert (await ask(model))[1].calls == [WantedCall("list", "{}")]


async def test_arguments_that_are_no_json_are_handed_on_as_they_are(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Call("read", '{"path": "a')))
    assert (await ask(model))[1].calls == [WantedCall("read", '{"path": "a')]


async def test_two_calls_with_one_id_are_two_calls(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Call("read", {"path": "a"}, id="same"), Call("read", {"path": "b"}, id="same")))
    _, answer = await ask(model)
    assert [call.arguments for call in answer.calls] == ['{"path": "a"}', '{"path": "b"}']


async def test_two_hundred_calls_in_one_step(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(*(Call("read", {"path": str(index)}) for index in range(200))), Reply("done"))
    _, answer = await ask(model)
    assert len(answer.calls) == 200
    results = [ToolResult(1, f"1.1.{index}", "read", "done", f"file {index}") for index in range(200)]
    await ask(model, HELLO, said(answer), *results)
    found = [message for message in sent(server) if message["role"] == "tool"] or sent(server)[-1]["content"]
    assert len(found) == 200


async def test_thinking_is_apart_from_the_text(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Think(["Let me ", "think."]), Text("Yes.")))
    deltas, answer = await ask(model)
    assert thinking_of(deltas) == answer.thinking == "Let me think."
    assert text_of(deltas) == answer.text == "Yes."


async def test_thinking_between_tags_is_thinking_too(server: Loopback) -> None:
    model = ProviderModel(provider(server, "openai"), "loopback")
    server.script(Reply(Text(["<think>", "hm", "</think>", "Yes."])), Reply("Again."))
    _, answer = await ask(model)
    assert (answer.text, answer.thinking) == ("Yes.", "hm")
    await ask(model, HELLO, said(answer), UserMessage(2, "And?"))
    assert "hm" not in json.dumps(sent(server))
    await model.close()


async def test_several_parts_add_up_to_what_was_streamed(model: ProviderModel, server: Loopback, wire: Wire) -> None:
    server.script(Reply(Think("a"), Text("One."), Call("read", {}), Think("b"), Text(["Tw", "o."])))
    deltas, answer = await ask(model)
    assert text_of(deltas) == answer.text == ("One.Two." if wire == "openai" else "One.\n\nTwo.")
    assert thinking_of(deltas) == answer.thinking == ("ab" if wire == "openai" else "a\n\nb")


async def test_halves_of_characters_become_whole_or_are_replaced(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Text(["\ud83d", "\ude42!", "\ud83d"])))
    deltas, answer = await ask(model)
    assert answer.text == "🙂!\ufffd"
    text_of(deltas).encode()


async def test_an_answer_cut_by_length_is_an_answer(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply("Once upon a", finish="length"))
    _, answer = await ask(model)
    assert (answer.text, answer.finish_reason) == ("Once upon a", "length")


async def test_whole_calls_of_a_cut_answer_are_kept(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Call("read", {"path": "a"}), finish="length"))
    _, answer = await ask(model)
    assert (answer.calls, answer.finish_reason) == ([WantedCall("read", '{"path": "a"}')], "length")


@pytest.mark.parametrize("arguments", ['{"path": "a", "content": "half a fi', ""])
async def test_a_call_cut_by_length_says_so(model: ProviderModel, server: Loopback, arguments: str) -> None:
    server.script(Reply("I write it.", Call("write", arguments), finish="length"))
    error = await refused(model)
    assert (error.problem.code, error.retry) == ("cut_by_length", False)
    assert error.problem.hint


async def test_nothing_at_all_because_of_the_length_is_no_bad_answer(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(finish="length"))
    assert (await refused(model)).problem.code == "cut_by_length"


async def test_thinking_alone_is_an_answer(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Think("hm")))
    assert (await ask(model))[1].thinking == "hm"


async def test_an_answer_without_usage_has_no_price(server: Loopback) -> None:
    model = ProviderModel(provider(server, "openai", name="openai"), "gpt-4o")
    server.script(Reply("ok", usage=None))
    _, answer = await ask(model)
    assert answer.usage.cost is None
    await model.close()


@pytest.mark.parametrize(("wire", "name"), [("openai", "gpt-4o"), ("anthropic", "claude-haiku-5-5")])
async def test_the_cost_of_a_known_model(server: Loopback, wire: Wire, name: str) -> None:
    model = ProviderModel(provider(server, wire, name=wire), name)
    server.script(Reply("ok", usage=(1_000_000, 100_000)))
    _, answer = await ask(model)
    assert answer.usage.cost is not None
    assert 0.1 < answer.usage.cost < 100
    await model.close()


async def test_a_model_of_our_own_has_no_price_even_with_a_known_name(server: Loopback) -> None:
    model = ProviderModel(provider(server, "openai", name="my-gateway"), "gpt-4o")
    server.script(Reply("ok"))
    assert (await ask(model))[1].usage.cost is None
    await model.close()


async def test_many_at_once_on_one_model(model: ProviderModel, server: Loopback) -> None:
    server.script(*(Reply(Text("x"), Pause(0.05), Text("y")) for _ in range(30)))
    answers = await asyncio.gather(*(ask(model) for _ in range(30)))
    assert {answer.text.replace("\n", "") for _, answer in answers} == {"xy"}
