"""`claude -p --output-format stream-json`, and that of Qwen Code, which is nearly the same. Pure.

Its `assistant` lines have one block each; with partial messages, pieces of it come before. A line with a parent is
about an agent that it started: its calls are shown, its words are not.
"""

from __future__ import annotations

from typing import Any

from holdfast.domain.events.parts import Usage
from holdfast.runtime.external.command.items import (
    Answered,
    CallBegun,
    CallEnded,
    Failed,
    Item,
    SessionNamed,
    TextAdded,
    TextWhole,
    TokensUsed,
    json_object,
    number,
    objects,
    our_tool,
    part,
    text,
)


def parse_claude(line: bytes) -> list[Item]:
    """Return what a line of Claude Code says. The cost of a turn is in its last line."""
    said = json_object(line)
    found = _items(said)
    if said.get("type") == "result":
        found.append(_result(said, usage=_usage(part(said, "usage"))))
    return found


def parse_qwen(line: bytes) -> list[Item]:
    """Return what a line of Qwen Code says. Its last line has the cost of the whole session, others their own."""
    said = json_object(line)
    found = _items(said)
    message = part(said, "message")
    if said.get("type") == "assistant" and "usage" in message:
        found.append(TokensUsed(_usage(part(message, "usage"))))
    if said.get("type") == "result":
        found.append(_result(said, usage=None))
    return found


def _items(said: dict[str, Any]) -> list[Item]:
    match said.get("type"):
        case "system" if said.get("subtype") == "init":
            version = text(said, "claude_code_version") or text(said, "qwen_code_version")
            return [SessionNamed(text(said, "session_id"), version)] if text(said, "session_id") else []
        case "stream_event" if not said.get("parent_tool_use_id"):
            return _delta(part(part(said, "event"), "delta"))
        case "assistant":
            is_own = not said.get("parent_tool_use_id")
            blocks = objects(part(said, "message"), "content")
            return [item for block in blocks for item in _block(block, is_own=is_own)]
        case "user":
            return [call_ended(block) for block in objects(part(said, "message"), "content") if is_call_result(block)]
        case _:
            return []


def _delta(delta: dict[str, Any]) -> list[Item]:
    if delta.get("type") == "text_delta":
        return [TextAdded(text(delta, "text"))]
    if delta.get("type") == "thinking_delta":
        return [TextAdded(text(delta, "thinking"), thinking=True)]
    return []


def _block(block: dict[str, Any], *, is_own: bool) -> list[Item]:
    match block.get("type"):
        case "text" if is_own:
            return [TextWhole(text(block, "text"))]
        case "thinking" if is_own:
            return [TextWhole(text(block, "thinking"), thinking=True)]
        case "tool_use" if text(block, "id"):
            return [CallBegun(text(block, "id"), our_tool(text(block, "name")), block.get("input"))]
        case _:
            return []


def is_call_result(block: dict[str, Any]) -> bool:
    """Whether a block is the result of a call."""
    return block.get("type") == "tool_result" and bool(text(block, "tool_use_id"))


def call_ended(block: dict[str, Any]) -> CallEnded:
    """Return the end of a call that a block reports."""
    content = block.get("content")
    output = content if isinstance(content, str) else "\n".join(text(one, "text") for one in objects(block, "content"))
    return CallEnded(text(block, "tool_use_id"), output, failed=block.get("is_error") is True)


def _result(said: dict[str, Any], *, usage: Usage | None) -> Item:
    if said.get("is_error") is True or text(said, "subtype").startswith("error"):
        errors = said.get("errors")
        words = [one for one in errors if isinstance(one, str)] if isinstance(errors, list) else []
        error = text(part(said, "error"), "message")
        return Failed(text(said, "result") or "; ".join(words) or error or text(said, "subtype") or "it failed")
    return Answered(usage, text=text(said, "result"))


def _usage(used: dict[str, Any]) -> Usage:
    cached = number(used, "cache_read_input_tokens")
    # Anthropic counts what is cached apart from the rest of the input
    fresh = number(used, "input_tokens") + number(used, "cache_creation_input_tokens")
    is_part = "total_tokens" in used
    return Usage(
        input_tokens=number(used, "input_tokens") if is_part else fresh + cached,
        output_tokens=number(used, "output_tokens"),
        cached_tokens=cached,
    )
