# --- from the wire to our answer ----------------------------------------------------------------


class _Listener:
    """Turns events into deltas that add up to the answer's text and thinking."""

    def __init__(self, provider: Provider) -> None:
        self._glue = _glue(provider)
        self._last: dict[str, int] = {}

    def hear(self, event: wire.ModelResponseStreamEvent) -> Delta | None:
        """The piece in it, if there is one."""
        if event.event_kind == "part_start" and (event.part.part_kind == "text" or event.part.part_kind == "thinking"):
            kind, piece = event.part.part_kind, event.part.content
        elif event.event_kind == "part_delta" and event.delta.part_delta_kind != "tool_call":
            kind, piece = event.delta.part_delta_kind, event.delta.content_delta or ""
        else:
            return None
        if not piece:
            return None
        if self._last.setdefault(kind, event.index) != event.index:
            self._last[kind], piece = event.index, self._glue + piece
        return Delta(text=_sound(piece)) if kind == "text" else Delta(thinking=_sound(piece))


def _glue(provider: Provider) -> str:
    """On the OpenAI wire an answer is one string, however it was cut; Anthropic's blocks are paragraphs."""
    return "" if provider.wire == "openai" else "\n\n"


def _joined(provider: Provider, pieces: list[str]) -> str:
    return _glue(provider).join(_sound(piece) for piece in pieces if piece)


def _sound(text: str) -> str:
    """Without halves of characters, which cannot be stored or sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _as_text(arguments: str | dict[str, object] | None) -> str:
    return json.dumps(arguments) if isinstance(arguments, dict) else _sound(arguments or "")


def _sealed(response: wire.ModelResponse, by: str) -> str:
    thinking = [
        (len(_sound(part.content)), part.id or "", part.signature or "")
        for part in response.parts
        if part.part_kind == "thinking"
    ]
    calls = [(call.provider_details or {}).get("extra_content") for call in response.tool_calls]
    if not any(id or signature for _, id, signature in thinking) and not any(calls):
        return ""
    return msgspec.json.encode(_Seal(by, thinking, calls if any(calls) else [])).decode()


def _usage(response: wire.ModelResponse) -> Usage:
    try:
        cost = float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # a model without a price, or an answer without usage
        cost = None
    return Usage(input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens, cost=cost)


def _said(error: Exception) -> str:
    """The provider's own words if there are any, else what lies at the bottom of the error."""
    body: object = getattr(error, "body", None)
    while isinstance(body, dict):
        raw = body["metadata"].get("raw") if isinstance(body.get("metadata"), dict) else None  # OpenRouter's upstream
        inner = next((body[key] for key in ("error", "message", "detail") if body.get(key)), None)
        body = f"{inner} ({raw})" if raw else inner if inner is not None else str(body)
    if body:
        return str(body)
    cause: BaseException = error
    while cause.__cause__ is not None and str(cause.__cause__):
        cause = cause.__cause__
    return str(cause) or type(cause).__name__


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
