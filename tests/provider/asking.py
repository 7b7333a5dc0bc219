"""Short ways to ask a model, and to look at what went over the wire."""

from __future__ import annotations

from contextlib import aclosing

from holdfast.domain.events.parts import Call
from holdfast.domain.history import AgentMessage, Message, UserMessage
from holdfast.models.model import ModelAnswer, ModelDelta, ModelError, ModelRequest, ToolSpec
from holdfast.models.provider import Provider, ProviderModel
from tests.provider.loopback import Json, Loopback, Wire

KEY = "sk-test-0123456789abcdef"
READ = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
HELLO = UserMessage(1, "Hello")


def provider(server: Loopback, wire: Wire, *, name: str = "local", key: str = KEY) -> Provider:
    return Provider(name, wire, server.base_url(wire), key, key_source="LOCAL_KEY")


def asking(*messages: Message, tools: list[ToolSpec] | None = None, instructions: str = "Be brief.") -> ModelRequest:
    return ModelRequest(1, instructions, list(messages) or [HELLO], [READ] if tools is None else tools)


async def ask(
    model: ProviderModel, *messages: Message, tools: list[ToolSpec] | None = None, instructions: str = "Be brief."
) -> tuple[list[ModelDelta], ModelAnswer]:
    """Everything but the last, and the last."""
    deltas: list[ModelDelta] = []
    answers: list[ModelAnswer] = []
    async with aclosing(model.stream(asking(*messages, tools=tools, instructions=instructions))) as pieces:
        async for piece in pieces:
            assert not answers, "something came after the answer"
            if isinstance(piece, ModelAnswer):
                answers.append(piece)
            else:
                deltas.append(piece)
    (answer,) = answers
    return deltas, answer


async def refused(model: ProviderModel, *messages: Message) -> ModelError:
    try:
        await ask(model, *messages)
    except ModelError as error:
        assert KEY not in f"{error.problem} {error}"
        return error
    raise AssertionError("it was answered")


def said(answer: ModelAnswer, *, turn: int = 1, step: int = 1) -> AgentMessage:
    """An answer as the log remembers it."""
    calls = [
        Call(call=f"{turn}.{step}.{index}", tool=wanted.tool, arguments=wanted.arguments)
        for index, wanted in enumerate(answer.calls)
    ]
    return AgentMessage(turn, answer.text, answer.thinking, calls, answer.signature)


def sent(server: Loopback, request: int = -1) -> list[Json]:
    """The messages of a request, without the instructions."""
    return [message for message in server.requests[request].body["messages"] if message["role"] != "system"]


def shape(message: Json) -> list[str]:
    """What a message holds, in words that are the same on both wires."""
    content = message["content"]
    if message["role"] == "tool":
        return [f"result {message['tool_call_id']}: {content}"]
    found = [f"{message['role']}: {content}"] if isinstance(content, str) else []
    for block in content if isinstance(content, list) else []:
        match block["type"]:
            case "text":
                found.append(f"{message['role']}: {block['text']}")
            case "tool_result":
                found.append(f"result {block['tool_use_id']}: {''.join(item['text'] for item in block['content'])}")
            case "tool_use":
                found.append(f"call {block['id']}: {block['name']} {block['input']}")
            case _:
                found.append(block["type"])
    for call in message.get("tool_calls", []):
        found.append(f"call {call['id']}: {call['function']['name']} {call['function']['arguments']}")
    return found


def shapes(server: Loopback, request: int = -1) -> list[str]:
    """All that a request holds, in order."""
    return [line for message in sent(server, request) for line in shape(message)]
