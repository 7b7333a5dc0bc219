"""What goes to the model, and what comes back from it as a fact."""

from __future__ import annotations

import os

import msgspec

from holdfast.domain.events.parts import Call
from holdfast.domain.events.session import ModelResponded
from holdfast.domain.history import TOKEN_SHIFT, text_size
from holdfast.domain.next_step import CallModel
from holdfast.domain.session import Session
from holdfast.models.model import ModelAnswer, ModelRequest, ToolSpec
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.reading import open_text

AGENTS_FILE = "AGENTS.md"
AGENTS_LIMIT = 32_000


def model_request(
    session: Session, *, turn: int, step: int = 1, instructions: str, context: ToolContext, tools: list[ToolSpec]
) -> ModelRequest:
    """Everything that one call depends on: who it is, where it works, what was said, what it can do."""
    parts = [instructions.strip(), f"Your working directory is {context.cwd}.", _of_the_directory(context)]
    whole = "\n\n".join(filter(None, parts))
    seen = session.seen
    return ModelRequest(turn, whole, seen[:], tools, step=step, tokens=seen.tokens(), session=session.id)


def fixed_size(request: ModelRequest) -> int:
    """About how many tokens of a request are no messages: instructions and tools."""
    return text_size(request.instructions) + sum(map(_tool_size, request.tools))


_sizes: dict[int, tuple[dict[str, object], int]] = {}
"""By the identity of the parameters of a tool, which are the same object at every call: they, and their size."""
SIZES = 1_000


def _tool_size(tool: ToolSpec) -> int:
    known = _sizes.get(id(tool.parameters))
    if known is None or known[0] is not tool.parameters:
        if len(_sizes) >= SIZES:
            _sizes.clear()
        known = _sizes[id(tool.parameters)] = (tool.parameters, len(msgspec.json.encode(tool.parameters)))
    return (len(tool.name) + len(tool.description) + known[1]) >> TOKEN_SHIFT


def _of_the_directory(context: ToolContext) -> str:
    """What the project tells every agent; a file that cannot be read is said to be so."""
    try:
        if context.cwd.is_dir() and not os.path.lexists(context.cwd / AGENTS_FILE):
            return ""
        path = context.resolve(AGENTS_FILE)
        if not path.exists():
            return ""
        with open_text(context, path, AGENTS_FILE) as file:
            text = file.read(4 * AGENTS_LIMIT).decode("utf-8", "replace")
            more = len(text) > AGENTS_LIMIT or file.read(1)
    except ToolFailed as error:
        return f"{AGENTS_FILE} of the working directory cannot be read: {error}"
    except OSError as error:
        return f"{AGENTS_FILE} of the working directory cannot be read: {error.strerror}."
    cut = "\n[… the rest is left out]" if more else ""
    return f"{AGENTS_FILE} of the working directory says:\n{text[:AGENTS_LIMIT]}{cut}"


def response_event(step: CallModel, answer: ModelAnswer, duration_ms: int) -> ModelResponded:
    """The answer as a fact. Call ids are ours: providers reuse theirs."""
    calls = [
        Call(call=f"{step.turn}.{step.step}.{index}", tool=wanted.tool, arguments=wanted.arguments)
        for index, wanted in enumerate(answer.calls)
    ]
    return ModelResponded(
        turn=step.turn,
        step=step.step,
        text=answer.text,
        thinking=answer.thinking,
        calls=calls,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        duration_ms=duration_ms,
        signature=answer.signature,
    )
