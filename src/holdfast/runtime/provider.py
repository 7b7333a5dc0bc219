"""The model port over pydantic-ai: any OpenAI-compatible server, OpenAI, Anthropic.

    our messages  →  the library's messages  →  one streamed request  →  Delta …  →  Answer, or a ModelError

Only this file knows the library, and it imports it inside functions: that costs seconds, so
`warm_up` does it in a thread when the gateway is up. Nothing is tried twice here; a ModelError says
whether that makes sense, and the loop decides. The stored messages stay ours, see `domain/session.py`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal, NoReturn
from urllib.parse import urlsplit

import msgspec

from holdfast.domain.events import Call, Problem, Usage
from holdfast.domain.session import AgentMessage, Message, Note, ToolResult, UserMessage
from holdfast.runtime.model import Answer, Delta, ModelError, ModelRequest, ToolSpec, WantedCall

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai import messages as wire
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.settings import ModelSettings

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 120.0
QUOTA_WAIT_SECONDS = 3600.0
SECRET_LENGTH = 8
"""A shorter key is a placeholder of a server that needs none, and not worth hiding."""
QUOTE = 400
HOME = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
TOO_LONG = re.compile(r"context.{0,12}(length|size|window|limit)|(prompt|input) is too long|token count.*exceeds", re.I)
REFUSED = re.compile(r"content.{0,3}(filter|policy|management)|moderation|flagged|safety", re.I)


@dataclass(frozen=True)
class Provider:
    """Who serves a model, and what it speaks."""

    name: str
    wire: Literal["openai", "anthropic"]
    base_url: str | None
    api_key: str = field(repr=False)
    key_source: str = ""
    """Where the key comes from, for a hint: the name of a variable, say."""

    @property
    def url(self) -> str:
        """Where it is."""
        return self.base_url or HOME[self.wire]

    @property
    def host(self) -> str:
        """Its name on the network."""
        return urlsplit(self.url).hostname or self.url


def warm_up() -> None:
    """Import the library and its prices: seconds of work, to be done in a thread."""
    import pydantic_ai.direct
    import pydantic_ai.models.anthropic
    import pydantic_ai.models.openai
    import pydantic_ai.providers.openai_compatible  # noqa: F401


class ProviderModel:
    """One model of one provider, with its connections."""

    def __init__(self, provider: Provider, model: str, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._provider = provider
        self._model = model
        self._idle = idle_seconds
        self._opening = asyncio.Lock()
        self._opened: tuple[httpx2.AsyncClient, LibraryModel] | None = None

    @property
    def name(self) -> str:
        """As written into the log."""
        return f"{self._provider.name}:{self._model}"

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[Delta | Answer, None]:
        """Ask once. Closing it, or cancelling who listens, drops the connection at once."""
        key = self._provider.api_key
        if not (key.isascii() and key.isprintable()) or " " in key:
            self._fail("wrong_key", "The key has characters that no key has.", self._key_hint())
        model = await self._open()
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.messages import InstructionPart
        from pydantic_ai.models import ModelRequestParameters

        history = _History(self._provider, by=self.name, system=model.system).of(request.messages)
        instructions = [InstructionPart(request.instructions)] if request.instructions.strip() else []
        tools = [_tool(spec) for spec in request.tools]
        wanted = ModelRequestParameters(function_tools=tools, instruction_parts=instructions)
        listener = _Listener(self._provider)
        try:
            asked = model_request_stream(
                model, history, model_settings=_settings(self._provider, model), model_request_parameters=wanted
            )
            async with asked as answer:
                async for event in answer:
                    if (delta := listener.hear(event)) is not None:
                        yield delta
                response = answer.get()
        except Exception as error:  # on garbage the library raises whatever its parsing stumbles over
            self._explain(error)
        yield self._answer(response)

    async def close(self) -> None:
        """Let go of the connections; the next request opens new ones."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened[0].aclose()

    async def _open(self) -> LibraryModel:
        async with self._opening:
            if self._opened is None:
                self._opened = await asyncio.to_thread(_build, self._provider, self._model, self._idle)
            return self._opened[1]

    # --- what came ------------------------------------------------------------------------------

    def _answer(self, response: wire.ModelResponse) -> Answer:
        details = response.provider_details or {}
        finish = response.finish_reason or details.get("finish_reason")
        if finish is None and response.state != "suspended":
            self._fail("network", "The answer ended before its end.", "It is tried again.", retry=True)
        if finish == "content_filter":
            why = self._clean(str(details.get("refusal") or "its content filter stopped the answer"))
            self._fail("refused", f"{self._provider.name} refused to answer: {why}", "Say it in another way.")
        if finish == "error":
            self._fail("provider_down", f"{self._provider.name} broke off the answer.", retry=True)
        text = _joined(self._provider, [part.content for part in response.parts if part.part_kind == "text"])
        thinking = _joined(self._provider, [part.content for part in response.parts if part.part_kind == "thinking"])
        calls = [WantedCall(call.tool_name, _as_text(call.args)) for call in response.tool_calls]
        if finish == "length" and (any(_as_object(c.arguments) is None for c in calls) or not (text or thinking or calls)):
            hint = "Ask for a smaller step: a long file is better written in pieces."
            self._fail("cut_by_length", "The answer reached its greatest length in the middle of a tool call.", hint)
        if not (text.strip() or thinking.strip() or calls):
            self._fail("bad_answer", f"{self._provider.name} gave an empty answer.", retry=True)
        finish = "tool_calls" if finish == "tool_call" else str(finish or "stop")
        return Answer(text, thinking, _seal(response, self.name), calls, finish, _usage(response))

    # --- what went wrong ------------------------------------------------------------------------

    def _explain(self, error: Exception) -> NoReturn:
        """The library's errors, as what they are for a person. The cause is left out: it may hold the key."""
        from pydantic_ai import exceptions as they

        who, said = self._provider.name, self._clean(_said(error))
        after = error.retry_after if isinstance(error, they.ModelAPIError) else None
        status = error.status_code if isinstance(error, they.ModelHTTPError) else 0
        match error:
            case they.ModelAuthenticationError():
                self._fail("wrong_key", f"{who} does not accept the key ({status}): {said}", self._key_hint())
            case they.ModelNotFoundError():
                guess = error.suggested_model_id if isinstance(error, they.ModelHTTPError) else None
                hint = f"Did you mean {guess}?" if guess else f"Check the model's name, and the address {self._provider.host}."
                self._fail("unknown_model", f"{who} has no model {self._model!r}: {said}", hint)
            case they.ModelContextWindowExceededError():
                self._too_long(said)
            case they.ModelQuotaExceededError():
                soon = after is not None and after <= QUOTA_WAIT_SECONDS
                back = f" It is back in {_span(after)}." if after is not None else ""
                hint = "Wait, or look at the plan and the bill at the provider."
                self._fail("quota", f"The quota at {who} is used up: {said}{back}", hint, retry=soon, after=after)
            case they.ModelRateLimitError():
                back = f" It asks to wait {_span(after)}." if after is not None else ""
                self._fail("rate_limit", f"{who} says that it is too fast: {said}{back}", retry=True, after=after)
            case they.ModelUnavailableError() | they.ModelServerError():
                self._fail("provider_down", f"{who} is out of order ({status}): {said}", retry=True, after=after)
            case they.ModelTimeoutError(phase="read"):
                message = f"No data from {self._provider.host} for {self._idle:g} s."
                self._fail("network", message, "It is tried again.", retry=True)
            case they.ModelConnectionError() | they.ModelRequestTimeout():
                self._fail("network", f"No connection to {self._provider.host}: {said}", "Is it running?", retry=True)
            case they.ContentFilterError():
                self._fail("refused", f"{who} refused to answer: {said}", "Say it in another way.")
            case they.ModelHTTPError():
                self._rejected(status, said, retry=status in (408, 409, 425), after=after)
            case they.ModelAPIError() if error.in_stream:
                self._fail("provider_down", f"{who} broke off the answer: {said}", retry=True, after=after)
            case they.ModelAPIError() if "finish_reason" in said:
                self._fail("network", "The answer ended before its end.", "It is tried again.", retry=True)
            case they.UserError():
                self._fail("rejected", f"The request cannot be sent: {said}")
            case _:
                self._fail("bad_answer", f"{who} gave an answer that cannot be read: {said}", retry=True)

    def _rejected(self, status: int, said: str, *, retry: bool, after: float | None) -> NoReturn:
        """A refused request whose category the library does not know: local servers have their own words."""
        if status == 413 or TOO_LONG.search(said):
            self._too_long(said)
        if status == 403 or REFUSED.search(said):
            self._fail("refused", f"{self._provider.name} refused the request: {said}", "Say it in another way.")
        message = f"{self._provider.name} did not take the request ({status}): {said}"
        self._fail("rejected", message, "Another model may take it.", retry=retry, after=after)

    def _too_long(self, said: str) -> NoReturn:
        hint = "Start a new session, undo a turn, or choose a model with a larger context."
        self._fail("context_too_long", f"The conversation is too long for {self._model}: {said}", hint)

    def _fail(
        self, code: str, message: str, hint: str = "", *, retry: bool = False, after: float | None = None
    ) -> NoReturn:
        problem = Problem(code=code, message=message, hint=hint)
        raise ModelError(problem, retry=retry, after_ms=None if after is None else int(after * 1000)) from None

    def _key_hint(self) -> str:
        source = f", which comes from {self._provider.key_source}" if self._provider.key_source else ""
        return f"Check the key of {self._provider.name}{source}."

    def _clean(self, text: str) -> str:
        """Without the key, which a provider may repeat, on one line and not too long."""
        key = self._provider.api_key
        if len(key) >= SECRET_LENGTH:
            text = text.replace(key, "***")
        text = " ".join(_sound(text).split())
        return text if len(text) <= QUOTE else f"{text[:QUOTE]}…"


# --- opening ------------------------------------------------------------------------------------


def _build(provider: Provider, model: str, idle: float) -> tuple[httpx2.AsyncClient, LibraryModel]:
    import httpx2

    client = httpx2.AsyncClient(
        timeout=httpx2.Timeout(idle, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=8),
        trust_env=not _on_loopback(provider.host),  # a proxy is not the way to this machine
    )
    key = provider.api_key or "none"  # an empty one makes the SDKs look into the environment for another
    if provider.wire == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        served = AnthropicProvider(api_key=key, base_url=provider.url, http_client=client)
        return client, AnthropicModel(model, provider=served)
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    whole = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)  # else a cut stream passes as whole
    if provider.host == "api.openai.com":
        own = OpenAIProvider(base_url=provider.url, api_key=key, http_client=client)
        return client, OpenAIChatModel(model, provider=own, profile=whole)
    other = OpenAICompatibleProvider(provider.name, base_url=provider.url, api_key=key, http_client=client)
    other.client.organization = other.client.project = None  # the SDK takes OpenAI's from the environment
    return client, OpenAIChatModel(model, provider=other, profile=whole)


def _on_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _settings(provider: Provider, model: LibraryModel) -> ModelSettings:
    if provider.wire == "openai":
        return {"max_retries": 0}
    from pydantic_ai.models.anthropic import AnthropicModelSettings

    settings = AnthropicModelSettings(
        max_retries=0,
        anthropic_cache_instructions=True,
        anthropic_cache_tool_definitions=True,
        anthropic_cache_messages=True,
    )
    if model.profile.get("anthropic_binds_thinking_blocks"):  # undo changes what they were bound to
        settings["anthropic_thinking"] = {
            "type": "adaptive",
            "block_binding": {"prefix_mismatch_behavior": "drop_block"},
        }
    return settings


def _tool(spec: ToolSpec) -> ToolDefinition:
    from pydantic_ai.tools import ToolDefinition

    schema = {"type": "object", "properties": {}, **spec.parameters}
    return ToolDefinition(spec.name, schema, spec.description, strict=False)


# --- from our messages to the wire --------------------------------------------------------------


class _Seal(msgspec.Struct):
    """What a model wants back with its own earlier answer, kept as our opaque `signature`."""

    by: str
    thinking: list[tuple[int, str, str]] = []
    """Each part of the thinking: its length, its id, the provider's seal on it."""
    calls: list[object] = []
    """What was attached to each tool call."""


class _History:
    """Our messages as the library's.

    Results follow their calls at once, in the order of the calls, and what else was said meanwhile
    comes after them. A call without a result gets one that says so: no provider takes a loose call.
    """

    def __init__(self, provider: Provider, *, by: str, system: str) -> None:
        self._provider = provider
        self._by = by
        self._system = system
        self._done: list[wire.ModelMessage] = []
        self._results: list[wire.ToolReturnPart] = []
        self._texts: list[str] = []

    def of(self, messages: list[Message]) -> list[wire.ModelMessage]:
        """All of them; the last one is always something to answer to."""
        results = {message.call: message for message in messages if isinstance(message, ToolResult)}
        for message in messages:
            match message:
                case UserMessage(text=text):
                    self._texts.append(text)
                case Note(text=text):
                    self._texts.append(f"[note from the runtime] {text}")
                case ToolResult():
                    pass  # stands behind its call
                case AgentMessage(text=text, calls=calls) if text.strip() or calls:
                    self._ask()
                    self._done.append(self._said(message))
                    self._results = [self._result(call, results.get(call.call)) for call in calls]
                case AgentMessage():
                    pass  # nothing but thinking; providers refuse that
        if not (self._results or any(map(str.strip, self._texts))):
            self._texts.append("[note from the runtime] Go on.")
        self._ask()
        return self._done

    def _ask(self) -> None:
        """Close what stands on our side, as one message with one text."""
        from pydantic_ai.messages import ModelRequest as Asked
        from pydantic_ai.messages import UserPromptPart

        text = "\n\n".join(text for text in self._texts if text.strip())
        parts = [*self._results, *([UserPromptPart(text)] if text else [])]
        if parts:
            self._done.append(Asked(parts))
        self._results, self._texts = [], []

    def _said(self, message: AgentMessage) -> wire.ModelResponse:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        seal = self._seal(message)
        parts: list[wire.ModelResponsePart] = list(self._thoughts(message.thinking, seal))
        if message.text.strip():
            parts.append(TextPart(message.text))
        for index, call in enumerate(message.calls):
            extra = seal.calls[index] if index < len(seal.calls) else None
            part = ToolCallPart(_name(call.tool), _as_object(call.arguments) or {}, _id(call.call))
            if extra is not None:
                part.provider_name, part.provider_details = self._system, {"extra_content": extra}
            parts.append(part)
        return ModelResponse(parts, provider_name=self._system)

    def _seal(self, message: AgentMessage) -> _Seal:
        """Only for the model that made it; for all others its thinking stays ours."""
        try:
            seal = msgspec.json.decode(message.signature or "{}", type=_Seal)
        except msgspec.MsgspecError:
            return _Seal("")
        return seal if seal.by == self._by else _Seal("")

    def _thoughts(self, thinking: str, seal: _Seal) -> Iterator[wire.ThinkingPart]:
        from pydantic_ai.messages import ThinkingPart

        at = 0
        for length, id, signature in seal.thinking:
            content = thinking[at : at + length]
            at += length + len(_glue(self._provider)) if length else 0
            if signature or id not in ("", "content"):  # else it came as text between tags
                yield ThinkingPart(content, id=id or None, signature=signature or None, provider_name=self._system)

    def _result(self, call: Call, result: ToolResult | None) -> wire.ToolReturnPart:
        from pydantic_ai.messages import ToolReturnPart

        if result is None:
            text = "[outcome unknown] It was interrupted before a result was written; it may or may not have happened."
        elif result.outcome == "done":
            text = result.output
        else:
            text = f"[{'failed' if result.outcome == 'failed' else 'outcome unknown'}] {result.output}"
        if _as_object(call.arguments) is None:
            text = f"{text}\n[your arguments were not a JSON object: {call.arguments[:QUOTE]}]"
        failed = result is not None and result.outcome == "failed" and self._provider.wire == "anthropic"
        return ToolReturnPart(
            _name(call.tool), text if text.strip() else "(no output)", _id(call.call), outcome="failed" if failed else "success"
        )


def _id(call: str) -> str:
    """Ours have dots, which Anthropic refuses."""
    return "call_" + re.sub(r"[^A-Za-z0-9_-]", "_", call)


def _name(tool: str) -> str:
    """A name that a model made up may be one that the provider refuses to read again."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", tool)[:64] or "unnamed"


def _as_object(arguments: str) -> dict[str, object] | None:
    """The arguments, or None when they are not an object that can be sent again as JSON."""
    try:
        parsed = json.loads(arguments, parse_constant=_refuse)
        json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
