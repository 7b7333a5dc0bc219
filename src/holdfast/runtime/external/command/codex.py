"""`codex exec --json`. Pure. An item is a message, a thought, a call or the plan."""

from __future__ import annotations

import shlex
from typing import Any

from holdfast.domain.events.external_agent import PlanEntry
from holdfast.domain.events.parts import Usage
from holdfast.runtime.external.command.items import (
    Answered,
    CallBegun,
    CallEnded,
    Failed,
    Item,
    PlanStated,
    SessionNamed,
    TextWhole,
    json_object,
    number,
    objects,
    part,
    text,
)

SHELLS = ("bash", "sh", "zsh")


def parse_codex(line: bytes) -> list[Item]:
    """Return what a line says. What a turn costs is said only as the total of its session."""
    said = json_object(line)
    match said.get("type"):
        case "thread.started":
            return [SessionNamed(text(said, "thread_id"))] if text(said, "thread_id") else []
        case "item.started" | "item.updated" | "item.completed":
            return _item(part(said, "item"), completed=said["type"] == "item.completed")
        case "turn.completed":
            return [Answered(total=token_usage(part(said, "usage")))]
        case "turn.failed":
            return [Failed(text(part(said, "error"), "message") or "its turn failed")]
        case _:  # an `error` may be one that it recovers from: `turn.failed` follows if it does not
            return []


def _item(item: dict[str, Any], *, completed: bool) -> list[Item]:
    id = text(item, "id")
    match text(item, "type"):
        case "agent_message":
            return [TextWhole(text(item, "text"))] if completed else []
        case "reasoning":
            return [TextWhole(text(item, "text"), thinking=True)] if completed else []
        case "todo_list":
            steps = objects(item, "items")
            entries = [PlanEntry(text=text(one, "text"), state=_state(one)) for one in steps]
            return [PlanStated(entries)]
        case "command_execution":
            begun = CallBegun(id, "terminal", {"command": inner_command(text(item, "command"))})
            code = item.get("exit_code")
            ended = CallEnded(
                id,
                text(item, "aggregated_output"),
                failed=text(item, "status") != "completed",
                exit_code=code if isinstance(code, int) else None,
            )
        case "file_change":
            changes = objects(item, "changes")
            begun = CallBegun(id, "write", {"changes": [f"{text(one, 'kind')} {text(one, 'path')}" for one in changes]})
            is_done = text(item, "status") == "completed"
            files = tuple(sorted({text(one, "path") for one in changes})) if is_done else ()
            ended = CallEnded(
                id, f"{len(changes)} changed" if is_done else "not changed", failed=not is_done, files=files
            )
        case "mcp_tool_call":
            begun = CallBegun(id, f"{text(item, 'server')}__{text(item, 'tool')}", item.get("arguments"))
            failed = text(item, "status") != "completed"
            results = objects(part(item, "result"), "content")
            output = "\n".join(text(one, "text") for one in results) or text(part(item, "error"), "message")
            ended = CallEnded(id, output, failed=failed)
        case "web_search":
            begun, ended = CallBegun(id, "fetch", {"query": text(item, "query")}), CallEnded(id, "searched")
        case _:  # an `error` here is a warning
            return []
    return [begun, ended] if completed else [begun]


def _state(step: dict[str, Any]) -> Any:
    return "completed" if step.get("completed") is True else "pending"


def inner_command(line: str) -> str:
    """Return the command itself: it is run by a shell, as in `/bin/bash -lc 'make test'`."""
    try:
        words = shlex.split(line)
    except ValueError:
        return line
    is_shell = len(words) == 3 and words[0].rpartition("/")[2] in SHELLS and words[1] in ("-lc", "-c")
    return words[2] if is_shell else line


def token_usage(used: dict[str, Any]) -> Usage:
    """Return what it says about tokens."""
    return Usage(
        input_tokens=number(used, "input_tokens"),
        output_tokens=number(used, "output_tokens"),
        cached_tokens=number(used, "cached_input_tokens"),
    )
