"""Requests to the model, and the events made from its answers."""

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
    """Return the request: instructions, working directory, messages and tools."""
    parts = [instructions.strip(), f"Your working directory is {context.cwd}.", _of_the_directory(context)]
    whole = "\n\n".join(filter(None, parts))
    seen = session.visible_history
    return ModelRequest(turn, whole, seen[:], tools, step=step, tokens=seen.tokens(), session=session.id)


def fixed_size(request: ModelRequest) -> int:
    """Return about how many tokens of a request are instructions and tools."""
    return text_size(request.instructions) + sum(map(_tool_size, request.tools))


_sizes: dict[int, tuple[dict[str, object], int]] = {}
"""The size of a tool's parameters, by their identity: they are the same object at every call."""
SIZES = 1_000


def _tool_size(tool: ToolSpec) -> int:
    known = _sizes.get(id(tool.parameters))
    if known is None or known[0] is not tool.parameters:
        if len(_sizes) >= SIZES:
            _sizes.clear()
        known = _sizes[id(tool.parameters)] = (tool.parameters, len(msgspec.json.encode(tool.parameters)))
    return (len(tool.name) + len(tool.description) + known[1]) >> TOKEN_SHIFT


def _of_the_directory(context: ToolContext) -> str:
    """Return the instructions of the project; a file that cannot be read is reported in them."""
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
    """Return the event of an answer. Its calls get ids of ours, since providers reuse theirs."""
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
