"""Our messages as the library's, and its answer as ours: a library change is no migration.

    our messages  →  the library's messages        the library's parts  →  pieces of an answer

Like `provider.py` it imports the library inside functions. Not here: how a model is asked.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.history import AgentMessage, Message, Note, ToolResult, UserMessage
from holdfast.models.model import ModelRequest
from holdfast.settings import ApiStyle

if TYPE_CHECKING:
    from pydantic_ai import messages as wire
    from pydantic_ai import models

QUOTE = 400
REMEMBERED = 40_000
"""How many converted messages are kept; those of the latest conversation always are."""
PART_SEPARATOR = {"openai": "", "anthropic": "\n\n"}
"""Between the parts of an answer: OpenAI cuts one string into pieces, Anthropic's blocks are paragraphs."""
NOTE = "[note from the runtime] "
ANY: dict[str, object] = {"type": "object", "properties": {}}
OUTCOMES = {"done": "", "failed": "[failed] ", "unknown": "[outcome unknown] "}
LOST = "[outcome unknown] It was interrupted before a result was written; it may or may not have happened."


class _ProviderState(msgspec.Struct):
    """What a model wants back with its own earlier answer; kept in our opaque `signature`."""

    by: str = ""
    thinking: list[tuple[int, str, str]] = []
    """Each part of the thinking: its length, its id, the provider's seal on it."""
    calls: list[object] = []
    """What was attached to each tool call."""


def to_parameters(request: ModelRequest) -> models.ModelRequestParameters:
    """The instructions and the tools of a request."""
    from pydantic_ai.messages import InstructionPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(name=t.name, description=t.description, parameters_json_schema=ANY | t.parameters, strict=False)
        for t in request.tools
    ]
    instructions = [InstructionPart(request.instructions)] if request.instructions.strip() else []
    return ModelRequestParameters(function_tools=tools, instruction_parts=instructions)


@dataclass(frozen=True, slots=True)
class Converted:
    """Messages in the library's form. Those before the last answer are final, whatever follows."""

    messages: list[wire.ModelMessage]
    final: int
    """How many of ours are before the last answer."""
    final_converted: int
    """And how many of the library's."""


def convert(messages: Sequence[Message], speaks: ApiStyle, *, by: str, system: str) -> Converted:
    """Our messages as the library's; the last one is always something to answer to.

    Results follow their calls at once; what else was said meanwhile comes after them, as one text.
    A call without a result gets a result that says so: no provider accepts a call without one.
    """
    from pydantic_ai import messages as m

    results = {message.call: message for message in messages if isinstance(message, ToolResult)}
    returns: list[wire.ToolReturnPart] = []
    texts: list[str] = []
    found: list[wire.ModelMessage] = []
    final = final_converted = 0
    for index, message in enumerate(messages):
        match message:
            case UserMessage(text=text) if text.strip():
                texts.append(text)
            case Note(text=text):
                texts.append(NOTE + text)
            case AgentMessage(text=text, calls=calls) if text.strip() or calls:
                if returns or texts:
                    parts = map(m.UserPromptPart, ["\n\n".join(texts)] if texts else [])
                    found.append(m.ModelRequest([*returns, *parts]))
                final, final_converted = index, len(found)
                found.append(_said_before(message, speaks, by=by, system=system))
                returns, texts = [_result(call, results.get(call.call), speaks) for call in calls], []
            case _:
                continue  # empty, nothing but thinking, or a result, which follows its call
    if not returns and not texts:
        texts.append(NOTE + "Go on.")
    found.append(m.ModelRequest([*returns, *map(m.UserPromptPart, ["\n\n".join(texts)] if texts else [])]))
    return Converted(found, final, final_converted)


class Conversions:
    """The conversations that were sent last in the library's form, so that only what is new is converted.

    A request mostly begins with the very messages of the one before it. After a summary or a trim it does not, and is
    converted as a whole.
    """

    def __init__(self, speaks: ApiStyle, *, by: str) -> None:
        self._speaks: ApiStyle = speaks
        self._by = by
        self._known: OrderedDict[str, tuple[list[Message], list[wire.ModelMessage]]] = OrderedDict()
        """Of each session what is final: our messages, and the library's."""
        self._count = 0

    def of(self, messages: list[Message], *, session: str, system: str) -> list[wire.ModelMessage]:
        """Convert the messages of a session."""
        ours, theirs = self._forget(session)
        if messages[: len(ours)] != ours or _has_late_result(messages[len(ours) :]):
            ours, theirs = [], []
        new = convert(messages[len(ours) :], self._speaks, by=self._by, system=system)
        if session:
            final = messages[: len(ours) + new.final]
            self._known[session] = (final, [*theirs, *new.messages[: new.final_converted]])
            self._count += len(final)
            while self._count > REMEMBERED and len(self._known) > 1:
                self._forget(next(iter(self._known)))
        return [*theirs, *new.messages]

    def _forget(self, session: str) -> tuple[list[Message], list[wire.ModelMessage]]:
        ours, theirs = self._known.pop(session, ([], []))
        self._count -= len(ours)
        return ours, theirs


def _has_late_result(messages: list[Message]) -> bool:
    """Whether there is a result of a call that was made before these messages."""
    calls = {call.call for message in messages if isinstance(message, AgentMessage) for call in message.calls}
    return any(isinstance(message, ToolResult) and message.call not in calls for message in messages)


def _said_before(message: AgentMessage, speaks: ApiStyle, *, by: str, system: str) -> wire.ModelResponse:
    from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

    try:
        seal = msgspec.json.decode(message.signature or "{}", type=_ProviderState)
    except msgspec.MsgspecError:
        seal = _ProviderState()
    if seal.by != by:
        seal = _ProviderState()  # it is another model's: its thinking stays with us
    parts: list[wire.ModelResponsePart] = []
    at = 0
    for length, id, signature in seal.thinking:
        thought = message.thinking[at : at + length]
        at += length + len(PART_SEPARATOR[speaks]) if length else 0
        if signature or id not in ("", "content"):  # else it came as text between tags
            parts.append(ThinkingPart(thought, id=id or None, signature=signature or None, provider_name=system))
    if message.text.strip():
        parts.append(TextPart(message.text))
    for index, call in enumerate(message.calls):
        part = ToolCallPart(_safe(call.tool), as_object(call.arguments or "{}") or {}, _safe(f"call_{call.call}"))
        if index < len(seal.calls) and seal.calls[index] is not None:
            part.provider_name, part.provider_details = system, {"extra_content": seal.calls[index]}
        parts.append(part)
    return ModelResponse(parts, provider_name=system)


def _result(call: Call, result: ToolResult | None, speaks: ApiStyle) -> wire.ToolReturnPart:
    from pydantic_ai.messages import ToolReturnPart

    text = LOST if result is None else OUTCOMES[result.outcome] + result.output
    text = text if text.strip() else "(no output)"
    if as_object(call.arguments or "{}") is None:
        text = f"{text}\n[your arguments were not a JSON object: {call.arguments[:QUOTE]}]"
    flag = result is not None and result.outcome == "failed" and speaks == "anthropic"
    return ToolReturnPart(_safe(call.tool), text, _safe(f"call_{call.call}"), outcome="failed" if flag else "success")


def _safe(name: str) -> str:
    """What both wires take; a name that a model made up may be one that they refuse to read again."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def as_object(arguments: str) -> dict[str, object] | None:
    """The arguments, or None when they are not an object that can be sent again as JSON."""
    try:
        parsed = json.loads(arguments)
        json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


# --- from the wire to our answer ----------------------------------------------------------------


def delta_of(event: wire.ModelResponseStreamEvent) -> tuple[str, int, str]:
    """What is new in it: text, thinking or a call, of which part, and the piece itself."""
    from pydantic_ai import messages as m

    match event:
        case m.PartStartEvent(part=m.TextPart() | m.ThinkingPart() as part):
            return part.part_kind, event.index, part.content
        case m.PartDeltaEvent(delta=m.TextPartDelta() | m.ThinkingPartDelta() as delta):
            return delta.part_delta_kind, event.index, delta.content_delta or ""
        case m.PartStartEvent(part=m.ToolCallPart(args=str(arguments))):
            return "call", event.index, arguments
        case m.PartDeltaEvent(delta=m.ToolCallPartDelta(args_delta=str(arguments))):
            return "call", event.index, arguments
        case _:
            return "", 0, ""


def replace_surrogates(text: str) -> str:
    """Without halves of characters, which cannot be stored or sent."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def provider_state_of(response: wire.ModelResponse, by: str) -> str:
    """What this model wants back with its answer; empty when there is nothing."""
    thoughts = [part for part in response.parts if part.part_kind == "thinking"]
    thinking = [(len(replace_surrogates(part.content)), part.id or "", part.signature or "") for part in thoughts]
    calls = [(call.provider_details or {}).get("extra_content") for call in response.tool_calls]
    if not any(id or signature for _, id, signature in thinking) and not any(calls):
        return ""
    return msgspec.json.encode(_ProviderState(by, thinking, calls if any(calls) else [])).decode()


def usage_of(response: wire.ModelResponse) -> Usage:
    """What it took, and what it cost if that is known."""
    try:
        cost = float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # a model without a price, or an answer without usage
        cost = None
    used = response.usage
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cache_read_tokens,
        context_tokens=used.input_tokens + used.output_tokens,
        cost=cost,
    )
