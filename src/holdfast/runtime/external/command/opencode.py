"""`opencode run --format json`. Pure. A call is said when it has ended; the last step says that it is not for tools."""

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
    TextWhole,
    TokensUsed,
    json_object,
    number,
    our_tool,
    part,
    text,
)

REJECTED = "rejected permission"


def parse_opencode(line: bytes) -> list[Item]:
    """Return what a line says. Each line names the session."""
    said = json_object(line)
    id, about = text(said, "sessionID"), part(said, "part")
    found: list[Item] = [SessionNamed(id)] if id else []
    match said.get("type"):
        case "text":
            found.append(TextWhole(text(about, "text")))
        case "reasoning":
            found.append(TextWhole(text(about, "text"), thinking=True))
        case "tool_use" if text(about, "callID"):
            found += _call(about)
        case "step_finish":
            found.append(TokensUsed(_usage(part(about, "tokens"))))
            if text(about, "reason") != "tool-calls":
                found.append(Answered())
        case "error":
            error = part(said, "error")
            found.append(Failed(text(part(error, "data"), "message") or text(error, "name") or "it failed"))
        case _:
            pass
    return found


def _call(about: dict[str, Any]) -> list[Item]:
    id, tool, state = text(about, "callID"), our_tool(text(about, "tool")), part(about, "state")
    failed = text(state, "status") != "completed"
    code = part(state, "metadata").get("exit")
    ended = CallEnded(
        id,
        text(state, "error") if failed else text(state, "output"),
        failed=failed,
        exit_code=code if isinstance(code, int) else None,
    )
    found: list[Item] = [CallBegun(id, tool, state.get("input")), ended]
    if failed and REJECTED in ended.output:  # which ends its turn without a message
        found.append(Failed("it asked for a permission, and nobody can be asked in this mode"))
    return found


def _usage(used: dict[str, Any]) -> Usage:
    cache = part(used, "cache")
    return Usage(
        input_tokens=number(used, "input") + number(cache, "read") + number(cache, "write"),
        output_tokens=number(used, "output") + number(used, "reasoning"),
        cached_tokens=number(cache, "read"),
    )
