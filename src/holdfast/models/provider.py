"""The model port over pydantic-ai: any OpenAI-compatible server, OpenAI, Anthropic.

    our messages  →  the library's messages  →  one streamed request  →  Delta …  →  Answer, or a ModelError

Only this file and `provider_messages.py` (the arrows) know the library. They import it inside functions:
that costs seconds, so `warm_up` does it in a thread. Nothing is tried twice here: a ModelError says whether it may be.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from holdfast.domain.events.problem import HANDLING, Problem, ProblemCode
from holdfast.domain.events.session import FinishReason
from holdfast.models.model import ModelAnswer, ModelDelta, ModelError, ModelRequest, WantedCall
from holdfast.models.provider_messages import (
    PART_SEPARATOR,
    QUOTE,
    Conversions,
    as_object,
    delta_of,
    provider_state_of,
    replace_surrogates,
    to_parameters,
    usage_of,
)
from holdfast.secrets import SECRET_LENGTH
from holdfast.settings import ApiStyle

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai import messages as wire
    from pydantic_ai import models
    from pydantic_ai.models import StreamedResponse

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 120.0
QUIET_SECONDS = 600.0
"""How long it may send keep-alive signals only: some models think for minutes without output."""
WAIT_SECONDS = 3600.0
"""If the provider asks for a longer wait, the turn fails."""
ENDS = (".", "!", "?", "…")
ANSWER_CHARS = 4_000_000
UNASKED = -1
HOME = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
WRONG_KEY = "Check the key of {name}{source}; after a change run `holdfast restart`, then send a message to continue."
PROBLEMS: dict[ProblemCode, tuple[str, str]] = {
    "wrong_key": ("{name} does not accept the key", WRONG_KEY),
    "unknown_model": ("{name} has no model {model!r}", "Check its name, and the address {host}."),
    "quota": ("The quota at {name} is used up", "Wait, or check your plan there."),
    "rate_limit": ("{name} limits the rate of requests", ""),
    "provider_down": ("{name} is not available", ""),
    "network": ("The connection to {host} failed", ""),
    "context_too_long": ("The conversation is too long", "Undo a turn or start a new session."),
    "refused": ("{name} refused", "Rephrase it, or use another model."),
    "cut_by_length": ("The answer reached the maximum length", "Ask for smaller steps, such as a file in parts."),
    "bad_answer": ("{name} gave an answer that cannot be used", ""),
    "rejected": ("{name} rejected the request", "Another model may accept it."),
}
"""By code: what happened, and what helps."""
FINISH_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length", "tool_call": "tool_calls"}
TOO_LONG = re.compile(
    r"context.{0,12}(length|size|window|limit|overflow)|(prompt|input|message|request)s? (is|are|was) too (long|large)|"
    r"token count.*exceeds|too many (input |prompt )?tokens|max(imum)? (prompt|input) length|model token limit|"
    r"request (body )?too large|reduce the length of the messages|tokens_limit_reached|tokens.{0,30}must be <=",
    re.IGNORECASE,
)
"""Messages of servers that have no code for it, or a code that the library does not know."""
REFUSED = re.compile(r"content.{0,3}(filter|policy|management)|moderation|flagged", re.I)


@dataclass(frozen=True)
class Provider:
    """The server of a model, and the style of its API."""

    name: str
    wire: ApiStyle
    base_url: str | None
    api_key: str = field(repr=False)
    key_source: str = ""
    """Where the key comes from, for a hint, such as the name of a variable."""
    quiet_seconds: float = QUIET_SECONDS

    @property
    def url(self) -> str:
        """Its address; the environment does not change it."""
        return self.base_url or HOME[self.wire]

    @property
    def host(self) -> str:
        """Its name on the network, as far as the address makes sense."""
        found = re.match(r"\w+://(?:[^@/]*@)?(\[[^]]*]|[^:/?#]+)", self.url)
        return found[1] if found else self.url


def warm_up(wires: Iterable[ApiStyle] = ("openai", "anthropic")) -> None:
    """Import the library, as much as is needed: seconds of work and 40 MB a wire, to be done in a thread."""
    import pydantic_ai.direct

    for wire in wires:
        if wire == "anthropic":
            import pydantic_ai.models.anthropic
        else:
            import pydantic_ai.models.openai
            import pydantic_ai.providers.openai_compatible  # noqa: F401


class ProviderModel:
    """One model of one provider, with its connections."""

    def __init__(self, provider: Provider, model: str, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._provider = provider
        self._model = model
        self._idle = idle_seconds
        self._window: int | None = UNASKED
        self._conversions = Conversions(provider.wire, by=self.name)
        self._opening = asyncio.Lock()
        self._opened: tuple[httpx2.AsyncClient, models.Model] | None = None

    @property
    def name(self) -> str:
        """As written into the log."""
        return f"{self._provider.name}:{self._model}"

    async def window(self) -> int | None:
        """As the price list knows it. That list is long: loading it takes a second, once, in a thread."""
        if self._window == UNASKED:
            self._window = await asyncio.to_thread(_find_window, self._model, self._provider.url)
        return self._window

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelDelta | ModelAnswer, None]:
        """Ask once. Closing the stream, or cancelling its reader, drops the connection at once."""
        if not re.fullmatch(r"[!-~]*", self._provider.api_key):
            self._fail("wrong_key", "it has characters that no key can have")
        last: dict[str, int] = {}
        size = 0
        try:
            async with self._opening:
                if self._opened is None:
                    self._opened = await asyncio.to_thread(_build, self._provider, self._model, self._idle)
                model = self._opened[1]
            from pydantic_ai.direct import model_request_stream

            history = self._conversions.of(request.messages, session=request.session, system=model.system)
            asked = model_request_stream(model, history, model_request_parameters=to_parameters(request))
            async with AsyncExitStack() as opened:
                async with asyncio.timeout(self._provider.quiet_seconds):
                    answer = await opened.enter_async_context(asked)
                pieces = await opened.enter_async_context(aclosing(self._pieces(answer)))
                async for kind, index, piece in pieces:
                    size += len(piece)
                    if size > ANSWER_CHARS:
                        break
                    if piece and kind != "call":
                        lead = PART_SEPARATOR[self._provider.wire] if last.get(kind, index) != index else ""
                        last[kind] = index
                        yield ModelDelta(**{kind: lead + replace_surrogates(piece)})
                response = answer.get()
        except Exception as error:  # on garbage the library raises whatever its parsing stumbles over
            self._explain(error)
        if size > ANSWER_CHARS:
            self._fail("bad_answer", f"it is longer than {ANSWER_CHARS} characters", retry=False)
        yield self._answer(response)

    async def _pieces(self, answer: StreamedResponse) -> AsyncGenerator[tuple[str, int, str], None]:
        """What is new, as it comes; a TimeoutError when nothing new comes for too long."""
        events, now, quiet = aiter(answer), asyncio.get_running_loop().time, self._provider.quiet_seconds
        end = now() + quiet
        while True:
            async with asyncio.timeout_at(end):
                event = await anext(events, None)
            if event is None:
                return
            found = delta_of(event)
            yield found
            if found[2]:
                end = now() + quiet

    async def close(self) -> None:
        """Let go of the connections; the next request opens new ones."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened[0].aclose()

    def _answer(self, response: wire.ModelResponse) -> ModelAnswer:
        details = response.provider_details or {}
        finish = response.finish_reason or details.get("finish_reason")
        if finish is None and response.state != "suspended":
            self._fail("network", "the answer was incomplete")
        if finish == "content_filter":
            self._fail("refused", str(details.get("refusal") or "its filter stopped the answer"))
        if finish == "error":
            self._fail("provider_down", "it aborted the answer")
        texts = [
            replace_surrogates(part.content) for part in response.parts if part.part_kind == "text" and part.content
        ]
        thoughts = [
            replace_surrogates(part.content) for part in response.parts if part.part_kind == "thinking" and part.content
        ]
        text, thinking = (
            PART_SEPARATOR[self._provider.wire].join(texts),
            PART_SEPARATOR[self._provider.wire].join(thoughts),
        )
        wanted = [(call.tool_name, call.args or ("" if finish == "length" else "{}")) for call in response.tool_calls]
        calls = [
            WantedCall(tool, replace_surrogates(args) if isinstance(args, str) else json.dumps(args))
            for tool, args in wanted
        ]
        if finish == "length" and any(as_object(call.arguments) is None for call in calls):
            self._fail("cut_by_length", "in the middle of a tool call")
        if not (text.strip() or thinking.strip() or calls):
            self._fail("cut_by_length" if finish == "length" else "bad_answer", "it is empty")
        reason = FINISH_REASONS.get(str(finish or "stop"), "other")
        return ModelAnswer(text, thinking, provider_state_of(response, self.name), calls, reason, usage_of(response))

    def _explain(self, error: Exception) -> NoReturn:
        from pydantic_ai.exceptions import ModelHTTPError, ModelTimeoutError

        said, after = _said(error), getattr(error, "retry_after", None)
        code = _code(error, said)
        if isinstance(error, ModelHTTPError):
            guess = f" Did you mean {error.suggested_model_id}?" if error.suggested_model_id else ""
            said = f"{said} ({error.status_code}){guess}"
        elif isinstance(error, ModelTimeoutError) and error.phase == "read":
            said = f"no data for {self._idle:g} s"
        elif type(error) is TimeoutError:
            code, said = "network", f"only keep-alive signals for {self._provider.quiet_seconds:g} s"
        retry = None if after is None else after <= WAIT_SECONDS and (code == "quota" or HANDLING[code].retryable)
        self._fail(code, said, after=after, retry=retry)

    def _fail(self, code: ProblemCode, said: str, *, after: float | None = None, retry: bool | None = None) -> NoReturn:
        """Raise the problem without the key, which a provider may repeat; the library's error may contain it, too."""
        provider, (words, hint) = self._provider, PROBLEMS[code]
        source = f", which comes from {provider.key_source}" if provider.key_source else ""
        names = {"name": provider.name, "model": self._model, "host": provider.host, "source": source}
        if len(provider.api_key) >= SECRET_LENGTH:
            said = said.replace(provider.api_key, "***")
        said = " ".join(replace_surrogates(said).split())
        said = said if len(said) <= QUOTE else f"{said[:QUOTE]}…"
        wait = ""
        if after is not None:
            wait = f"{'' if said.endswith(ENDS) else '.'} It asks to wait {after:.0f} s."
        after_ms = None if after is None else int(after * 1000)
        message = f"{words.format(**names)}: {said}{wait}"
        problem = Problem(code=code, message=message, hint=hint.format(**names), after_ms=after_ms)
        raise ModelError(
            problem, retry=HANDLING[code].retryable if retry is None else retry, after_ms=after_ms
        ) from None


def _find_window(model: str, url: str) -> int | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(model, None, None, url)[1].context_window
    except LookupError:
        return None


def _build(provider: Provider, model: str, idle: float) -> tuple[httpx2.AsyncClient, models.Model]:
    warm_up([provider.wire])
    import httpx2

    client = httpx2.AsyncClient(
        timeout=httpx2.Timeout(idle, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=8),
        trust_env=provider.host not in ("127.0.0.1", "localhost", "[::1]"),  # a proxy is not the way to this machine
    )
    key = provider.api_key or "none"  # an empty one makes the SDKs look into the environment for another
    if provider.wire == "anthropic":
        return client, _anthropic(provider.url, key, model, client)
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    whole = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)  # else a cut stream passes as whole
    sdk = AsyncOpenAI(base_url=provider.url, api_key=key, http_client=client, max_retries=0)
    if provider.url.rstrip("/") == HOME["openai"]:
        return client, OpenAIChatModel(model, provider=OpenAIProvider(openai_client=sdk), profile=whole)
    sdk.organization = sdk.project = None  # it took OpenAI's from the environment
    return client, OpenAIChatModel(
        model, provider=OpenAICompatibleProvider(provider.name, openai_client=sdk), profile=whole
    )


def _anthropic(url: str, key: str, model: str, client: httpx2.AsyncClient) -> models.Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
    from pydantic_ai.providers.anthropic import AnthropicProvider

    chosen = AnthropicModelSettings(anthropic_cache_messages=True, anthropic_cache_instructions=True)
    chosen["anthropic_cache_tool_definitions"] = True
    sdk = AsyncAnthropic(base_url=url, api_key=key, http_client=client, max_retries=0)
    served = AnthropicProvider(anthropic_client=sdk)
    if (served.model_profile(model) or {}).get("anthropic_binds_thinking_blocks"):  # and undo changes what to
        chosen["anthropic_thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    return AnthropicModel(model, provider=served, settings=chosen)


def _code(error: Exception, said: str) -> ProblemCode:
    """Return the code of a problem; local servers use messages of their own."""
    from pydantic_ai import exceptions as e

    kinds: list[tuple[type[Exception] | tuple[type[Exception], ...], ProblemCode]] = [
        (e.ModelContextWindowExceededError, "context_too_long"),
        (e.ModelAuthenticationError, "wrong_key"),
        (e.ModelNotFoundError, "unknown_model"),
        (e.ModelQuotaExceededError, "quota"),
        (e.ModelRateLimitError, "rate_limit"),
        ((e.ModelUnavailableError, e.ModelServerError), "provider_down"),
        (e.ModelConnectionError, "network"),
        (e.ContentFilterError, "refused"),
        (e.UserError, "rejected"),
    ]
    known = next((code for kind, code in kinds if isinstance(error, kind)), None)
    status, in_stream = getattr(error, "status_code", 0), getattr(error, "in_stream", False)
    may_be = (status or in_stream) and known not in ("wrong_key", "unknown_model", "quota")
    if may_be and (status == 413 or TOO_LONG.search(f"{said} {getattr(error, 'body', '')}")):
        return "context_too_long"
    if known is not None:
        return known
    if not status and in_stream:
        return "provider_down"
    if not status:
        return "network" if "finish_reason" in said else "bad_answer"  # the stream ended without one
    return "refused" if status == 403 or REFUSED.search(said) else "network" if status == 408 else "rejected"


def _said(error: Exception) -> str:
    """Return the provider's own message, or else that of the innermost error."""
    body: object = getattr(error, "body", None)
    while isinstance(body, dict):
        details = body.get("metadata")  # OpenRouter: what the provider behind it said
        raw = details.get("raw") if isinstance(details, dict) else None
        inner = next((body[key] for key in ("error", "message", "detail") if body.get(key)), str(body))
        body = f"{inner} ({raw})" if raw else inner
    if body:
        return str(body)
    cause: BaseException = error
    while cause.__cause__ is not None and str(cause.__cause__):
        cause = cause.__cause__
    return str(cause) if isinstance(error, RuntimeError) and str(cause) else f"{type(cause).__name__}: {cause}"
