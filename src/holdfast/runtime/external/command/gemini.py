"""`gemini -o stream-json`. Pure. Its answer comes in pieces; nothing says where a message ends."""

from __future__ import annotations

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
    json_object,
    number,
    our_tool,
    part,
    text,
)


def parse_gemini(line: bytes) -> list[Item]:
    """Return what a line says."""
    said = json_object(line)
    match said.get("type"):
        case "init" if text(said, "session_id"):
            return [SessionNamed(text(said, "session_id"))]
        case "message" if said.get("role") == "assistant":
            words = text(said, "content")
            return [TextAdded(words) if said.get("delta") is True else TextWhole(words)]
        case "tool_use" if text(said, "tool_id"):
            return [CallBegun(text(said, "tool_id"), our_tool(text(said, "tool_name")), said.get("parameters"))]
        case "tool_result" if text(said, "tool_id"):
            failed = said.get("status") != "success"
            output = text(said, "output") or text(part(said, "error"), "message")
            return [CallEnded(text(said, "tool_id"), output, failed=failed)]
        case "result" if said.get("status") == "success":
            used = part(said, "stats")
            usage = Usage(
                input_tokens=number(used, "input_tokens"),
                output_tokens=number(used, "output_tokens"),
                cached_tokens=number(used, "cached"),
            )
            return [Answered(usage)]
        case "result":
            return [Failed(text(part(said, "error"), "message") or "its turn failed")]
        case _:  # an `error` is a warning, or a `result` with it follows
            return []
