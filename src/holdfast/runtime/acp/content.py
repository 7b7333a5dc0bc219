"""Calls of an agent, their arguments and what they produced, in our words. Pure."""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.events.parts import Call, ShownArgument
from holdfast.runtime.acp.protocol import SessionUpdate
from holdfast.runtime.external_steps import AnnouncedCall
from holdfast.runtime.worker_access import SERVER

VALUE_SHOWN = 4_000
TOOLS = {
    "read": "read",
    "search": "search",
    "edit": "write",
    "delete": "write",
    "move": "write",
    "execute": "terminal",
    "fetch": "fetch",
}
"""The tool whose rules hold for a call of this kind; any other has the name of its kind."""
GIVEN_TITLES = tuple(
    form.replace("SERVER", SERVER)
    for form in ("mcp__SERVER__{}", "SERVER__{}", "SERVER_{}", "SERVER/{}", "SERVER.{}", "{} (SERVER MCP Server)")
)
"""How agents call a tool of the server that we gave them."""


def merge(call: AnnouncedCall, update: SessionUpdate) -> None:
    """Add what an update says about a call."""
    call.title = update.title or call.title
    call.tool = TOOLS.get(update.kind, update.kind) if update.kind else call.tool
    call.raw_input = update.raw_input or call.raw_input
    call.begun = call.begun or update.status in ("in_progress", "completed", "failed")


def is_given_tool(call: AnnouncedCall, tools: frozenset[str]) -> bool:
    """Whether a call is of one of the tools that we gave the agent. Its whole title must be a name of the tool: what an
    agent does with tools of its own has titles that a model can choose, such as a command line.
    """
    return any(call.title in (form.format(tool) for form in GIVEN_TITLES) for tool in tools)


def text_of(content: Any) -> str:
    """Return the text of a block; empty if it is of another kind."""
    text = content.get("text") if isinstance(content, dict) else None
    return text if isinstance(text, str) else ""


def output_of(content: Any) -> str:
    """Return what a call produced, in words: texts as they are, changes of files as what they are, anything else as
    JSON.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        output = content.get("output") or content.get("stdout") if isinstance(content, dict) else None
        return output if isinstance(output, str) else in_words(content)
    parts = []
    for piece in content:
        if isinstance(piece, dict) and piece.get("type") == "diff":
            parts.append(f"changed {piece.get('path', 'a file')}")
        elif isinstance(piece, dict) and isinstance(piece.get("content"), dict):
            parts.append(text_of(piece["content"]))
    return "\n".join(filter(None, parts))


def files_of(update: SessionUpdate) -> list[str]:
    """Return the files that a call changed, by the changes that it shows."""
    content = update.content if isinstance(update.content, list) else []
    found = [piece.get("path") for piece in content if isinstance(piece, dict) and piece.get("type") == "diff"]
    if not found and update.kind in ("edit", "delete", "move"):
        found = [location.path for location in update.locations or []]
    return sorted({path for path in found if isinstance(path, str) and path})


def exit_code_of(output: Any) -> int | None:
    """Return the exit code of a command, if the agent says it."""
    if not isinstance(output, dict):
        return None
    code = output.get("exitCode", output.get("exit_code"))
    return code if isinstance(code, int) else None


def arguments_of(call: Call) -> Any:
    """Return the arguments of a call as they were given."""
    try:
        return json.loads(call.arguments)
    except ValueError:
        return None


def in_words(value: object) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def shown_argument(name: str, value: str) -> ShownArgument:
    """Return an argument as a person sees it."""
    return ShownArgument(name=name, value=value[:VALUE_SHOWN], left_out=max(0, len(value) - VALUE_SHOWN))
