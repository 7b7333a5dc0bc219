"""Our messages in the form that each provider wants."""

from __future__ import annotations

import json
import random
import re
from typing import cast

import pytest

from holdfast.domain.events.parts import Call as Made
from holdfast.domain.events.session import CallOutcome
from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage
from holdfast.models.model import ToolSpec
from holdfast.models.provider import ProviderModel, warm_up
from holdfast.models.provider_messages import Conversions, convert
from tests.provider.asking import HELLO, ask, provider, said, sent, shapes
from tests.provider.loopback import Call, Json, Loopback, Reply, Text, Think, Wire

READ_A = Made(call="1.1.0", tool="read", arguments='{"path":"a"}')
READ_B = Made(call="1.1.1", tool="read", arguments='{"path":"b"}')
OK = Reply("ok")


def arguments(wire: Wire, value: Json) -> str:
    """As the wire shows them: OpenAI as a string, Anthropic as an object."""
    return json.dumps(value, separators=(",", ":")) if wire == "openai" else str(value)


async def test_results_are_results(model: ProviderModel, server: Loopback, wire: Wire) -> None:
    server.script(OK)
    agent = AgentMessage(1, "I look.", "", [READ_A, READ_B])
    results = [ToolResult(1, "1.1.0", "read", "done", "A"), ToolResult(1, "1.1.1", "read", "failed", "no such file")]
    await ask(model, HELLO, agent, *results)
    assert shapes(server) == [
        "user: Hello",
        "assistant: I look.",
        f"call call_1_1_0: read {arguments(wire, {'path': 'a'})}",
        f"call call_1_1_1: read {arguments(wire, {'path': 'b'})}",
        "result call_1_1_0: A",
        "result call_1_1_1: [failed] no such file",
    ]


async def test_notes_come_after_the_results(model: ProviderModel, server: Loopback) -> None:
    server.script(OK)
    await ask(
        model,
        HELLO,
        AgentMessage(1, "", "", [READ_A, READ_B]),
        Note(1, "You were interrupted."),
        ToolResult(1, "1.1.1", "read", "done", "B"),
        UserMessage(1, "Are you there?"),
        ToolResult(1, "1.1.0", "read", "done", "A"),
        Note(1, "Go on."),
    )
    assert shapes(server)[3:] == [
        "result call_1_1_0: A",
        "result call_1_1_1: B",
        "user: [note from the runtime] You were interrupted.\n\nAre you there?\n\n[note from the runtime] Go on.",
    ]


@pytest.mark.parametrize(
    ("outcome", "output", "text"),
    [
        ("done", "A", "A"),
        ("done", "", "(no output)"),
        ("done", " \n", "(no output)"),
        ("failed", "no", "[failed] no"),
        ("unknown", "the gateway died", "[outcome unknown] the gateway died"),
    ],
)
async def test_an_outcome_is_described_in_the_result(
    model: ProviderModel, server: Loopback, outcome: str, output: str, text: str
) -> None:
    server.script(OK)
    result = ToolResult(1, "1.1.0", "read", cast(CallOutcome, outcome), output)
    await ask(model, HELLO, AgentMessage(1, "", "", [READ_A]), result)
    assert shapes(server)[-1] == f"result call_1_1_0: {text}"
    if server.requests[-1].wire == "anthropic":
        (block,) = sent(server)[-1]["content"]
        assert block["is_error"] is (outcome == "failed")


async def test_a_call_that_never_ended_has_an_unknown_outcome(model: ProviderModel, server: Loopback) -> None:
    server.script(OK)
    result = ToolResult(1, "1.1.0", "read", "done", "A")
    await ask(model, HELLO, AgentMessage(1, "", "", [READ_A, READ_B]), result, UserMessage(2, "And now?"))
    assert shapes(server)[3:5] == [
        "result call_1_1_0: A",
        "result call_1_1_1: [outcome unknown] It was interrupted before a result was written; "
        "it may or may not have happened.",
    ]
    assert shapes(server)[5] == "user: And now?"


@pytest.mark.parametrize("broken", ['{"path": "a', "[1]", '"a"', '{"n": NaN}', '{"x": "\\ud800"}', "[" * 100_000])
async def test_arguments_that_are_no_object_do_no_harm(model: ProviderModel, server: Loopback, broken: str) -> None:
    server.script(OK)
    call = Made(call="1.1.0", tool="read", arguments=broken)
    result = ToolResult(1, "1.1.0", "read", "failed", "The arguments do not fit.")
    await ask(model, HELLO, AgentMessage(1, "", "", [call]), result)
    _, asked, answered = shapes(server)
    assert asked == "call call_1_1_0: read {}"
    assert answered.startswith("result call_1_1_0: [failed] The arguments do not fit.\n[your arguments were not a JSON")
    assert broken[:100] in answered


async def test_arguments_that_were_empty_are_an_empty_object(model: ProviderModel, server: Loopback) -> None:
    server.script(OK)
    call = Made(call="1.1.0", tool="list", arguments="")
    await ask(model, HELLO, AgentMessage(1, "", "", [call]), ToolResult(1, "1.1.0", "list", "done", "A"))
    assert shapes(server)[1:] == ["call call_1_1_0: list {}", "result call_1_1_0: A"]


async def test_a_made_up_tool_name_does_not_poison_the_session(model: ProviderModel, server: Loopback) -> None:
    server.script(OK)
    call = Made(call="1.1.0", tool="read the file!" + "x" * 100, arguments="{}")
    await ask(model, HELLO, AgentMessage(1, "", "", [call]), ToolResult(1, "1.1.0", call.tool, "failed", "no such"))
    assert shapes(server)[1].startswith("call call_1_1_0: read_the_file_xxx")
    assert len(shapes(server)[1].split()[2]) == 64


async def test_what_people_say_in_a_row_is_one_message(model: ProviderModel, server: Loopback) -> None:
    server.script(OK)
    await ask(model, UserMessage(1, "One"), UserMessage(1, "  "), Note(1, "This turn failed."), UserMessage(2, "Two"))
    assert shapes(server) == ["user: One\n\n[note from the runtime] This turn failed.\n\nTwo"]


async def test_roles_alternate_whatever_was_undone(model: ProviderModel, server: Loopback) -> None:
    server.script(OK)
    await ask(
        model,
        UserMessage(1, "One"),
        AgentMessage(1, "First.", "", []),
        UserMessage(3, "Three"),
        AgentMessage(3, "", "only thinking", []),
        UserMessage(4, "Four"),
    )
    assert [message["role"] for message in sent(server)] == ["user", "assistant", "user"]
    assert shapes(server)[-1] == "user: Three\n\nFour"


@pytest.mark.parametrize("messages", [[AgentMessage(1, "Done.", "", [])], [UserMessage(1, " ")]])
async def test_a_request_ends_with_a_user_message(
    model: ProviderModel, server: Loopback, messages: list[AgentMessage | UserMessage]
) -> None:
    server.script(OK)
    await ask(model, *messages)
    assert shapes(server)[-1] == "user: [note from the runtime] Go on."


async def test_instructions_and_tools(model: ProviderModel, server: Loopback, wire: Wire) -> None:
    server.script(OK, OK)
    bare = ToolSpec("now", "What time it is.", {})
    schema = {"type": "object", "properties": {"path": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"type": "string"}}}
    await ask(model, tools=[ToolSpec("read", "Read a file.", dict(schema)), bare], instructions="Be kind.")
    body = server.requests[-1].body
    if wire == "openai":
        assert body["messages"][0] == {"role": "system", "content": "Be kind."}
        tools = {tool["function"]["name"]: tool["function"] for tool in body["tools"]}
        parameters = "parameters"
    else:
        assert [block["text"] for block in body["system"]] == ["Be kind."]
        tools = {tool["name"]: tool for tool in body["tools"]}
        parameters = "input_schema"
    assert tools["read"]["description"] == "Read a file."
    assert tools["read"][parameters]["properties"].keys() == {"path"}
    assert tools["read"][parameters]["$defs"] == {"P": {"type": "string"}}
    assert tools["now"][parameters]["type"] == "object"
    assert "strict" not in json.dumps(body)
    await ask(model, tools=[], instructions="")
    assert "tools" not in server.requests[-1].body
    assert "system" not in server.requests[-1].body
    assert len(server.requests[-1].body["messages"]) == 1


async def test_anthropic_is_asked_to_cache_what_stays(server: Loopback) -> None:
    model = ProviderModel(provider(server, "anthropic"), "loopback")
    server.script(OK)
    await ask(model)
    body = server.requests[-1].body
    cached = {"type": "ephemeral", "ttl": "5m"}
    assert body["system"][-1]["cache_control"] == cached
    assert body["tools"][-1]["cache_control"] == cached
    assert body["messages"][-1]["content"][-1]["cache_control"] == cached
    await model.close()


# --- thinking goes back to who thought it -------------------------------------------------------


async def test_thinking_returns_with_its_signature(model: ProviderModel, server: Loopback, wire: Wire) -> None:
    server.script(Reply(Think(["Let me ", "think."], signature="U0VBTA=="), Text("I look."), Call("read", {})), OK)
    _, answer = await ask(model)
    await ask(model, HELLO, said(answer), ToolResult(1, "1.1.0", "read", "done", "A"))
    assistant = sent(server)[1]
    if wire == "openai":
        assert assistant["reasoning_content"] == "Let me think."
        assert assistant["content"] == "I look."
    else:
        assert assistant["content"][:2] == [
            {"type": "thinking", "thinking": "Let me think.", "signature": "U0VBTA=="},
            {"type": "text", "text": "I look."},
        ]


async def test_several_signatures_return_with_their_own_text(server: Loopback) -> None:
    model = ProviderModel(provider(server, "anthropic"), "loopback")
    parts = (Think("a 🙂", "QQ=="), Think("", "UkVE", redacted=True), Think("b", "Qg=="), Call("read", {}))
    server.script(Reply(*parts), OK)
    _, answer = await ask(model)
    assert answer.thinking == "a 🙂\n\nb"
    await ask(model, HELLO, said(answer), ToolResult(1, "1.1.0", "read", "done", "A"))
    assert sent(server)[1]["content"][:3] == [
        {"type": "thinking", "thinking": "a 🙂", "signature": "QQ=="},
        {"type": "redacted_thinking", "data": "UkVE"},
        {"type": "thinking", "thinking": "b", "signature": "Qg=="},
    ]
    await model.close()


async def test_another_model_does_not_get_it(model: ProviderModel, server: Loopback, wire: Wire) -> None:
    server.script(Reply(Think("a secret thought"), Text("I look."), Call("read", {})), OK)
    _, answer = await ask(model)
    other = ProviderModel(provider(server, "anthropic" if wire == "openai" else "openai", name="other"), "loopback")
    await ask(other, HELLO, said(answer), ToolResult(1, "1.1.0", "read", "done", "A"))
    assert "secret thought" not in json.dumps(server.requests[-1].body)
    assert shapes(server)[1] == "assistant: I look."
    await other.close()


@pytest.mark.parametrize("seal", ["{", "an older seal", '{"by": 5}', '{"by": "local:loopback", "thinking": [[1]]}'])
async def test_a_broken_seal_is_no_seal(model: ProviderModel, server: Loopback, seal: str) -> None:
    server.script(OK)
    await ask(model, HELLO, AgentMessage(1, "Yes.", "hm", [], seal), UserMessage(2, "And?"))
    assert shapes(server)[1] == "assistant: Yes."
    assert "hm" not in json.dumps(sent(server))


async def test_what_is_attached_to_a_call_returns(server: Loopback) -> None:
    model = ProviderModel(provider(server, "openai"), "loopback")
    extra = {"google": {"thought_signature": "c2lnbmVk"}}
    server.script(Reply(Call("read", {"path": "a"}, extra=extra), Call("read", {"path": "b"})), OK)
    _, answer = await ask(model)
    results = [ToolResult(1, f"1.1.{index}", "read", "done", "A") for index in range(2)]
    await ask(model, HELLO, said(answer), *results)
    calls = sent(server)[1]["tool_calls"]
    assert [call.get("extra_content") for call in calls] == [extra, None]
    await model.close()


async def test_a_model_that_binds_its_thinking_may_drop_it(server: Loopback) -> None:
    model = ProviderModel(provider(server, "anthropic"), "claude-haiku-5-5")
    server.script(OK)
    await ask(model)
    thinking = server.requests[-1].body["thinking"]
    assert thinking == {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert "thinking-binding" in server.requests[-1].headers["anthropic-beta"]
    await model.close()


async def test_only_what_is_new_is_converted_and_it_is_what_a_whole_conversion_gives() -> None:
    """Growing, forked, undone, trimmed: the beginning that stays the same is the same objects."""
    warm_up(["openai"])
    conversions, chance = Conversions("openai", by="it:model"), random.Random(7)
    history: list[Message] = []
    before: list[object] = []
    for turn in range(1, 40):
        calls = [Made(call=f"{turn}.1.{n}", tool="read", arguments="{}") for n in range(chance.randrange(3))]
        history += [UserMessage(turn, f"do {turn}"), AgentMessage(turn, "I look.", "", calls, "", 1)]
        history += [ToolResult(turn, call.call, "read", "done", f"file {turn}", 1) for call in reversed(calls)]
        history += [Note(turn, "You were interrupted.", 1)] * chance.randrange(2)
        if turn % 13 == 0:
            history = [Note(0, "A summary."), *history[-6:]]  # begins with an answer's results, whose call is gone
        if turn % 11 == 0:
            history = history[:-4]
        messages = list(history)
        got = conversions.of(messages, session="s", system="openai")
        whole = convert(messages, "openai", by="it:model", system="openai").messages
        assert list(map(_plain, got)) == list(map(_plain, whole))
        if turn % 13 and turn % 11 and (turn - 1) % 11 and (turn - 1) % 13 and before:
            assert all(one is other for one, other in zip(got, before[:-2], strict=False))
        before = list(got)


def _plain(message: object) -> str:
    return re.sub(r"timestamp=.*?\)\)?,? ?", "", repr(message))
