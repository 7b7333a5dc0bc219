"""Calls of an agent, their arguments and what they produced, in our words. Pure."""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.events.parts import Call, ShownArgument
from holdfast.runtime.external.acp.protocol import SessionUpdate
from holdfast.runtime.external.steps import AnnouncedCall
from holdfast.worker_access import SERVER

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
GIVEN_NAMES = ("mcp__{server}__{tool}", "{server}__{tool}", "{server}_{tool}", "{server}-{tool}", "mcp.{server}.{tool}")
GIVEN_TITLES = (*GIVEN_NAMES, "{tool} ({server} MCP Server)")
"""How agents call a tool of the server that we gave them."""


def merge(call: AnnouncedCall, update: SessionUpdate, tools: frozenset[str]) -> None:
    """Add what an update says about a call. `tools` are those that we gave the agent."""
    call.raw_input = update.raw_input or call.raw_input
    if tool := call.tool if call.tool in tools else given_tool(update, tools):
        call.tool, call.title = tool, ""
        if isinstance(call.raw_input, dict) and set(call.raw_input) == {"server", "tool", "arguments"}:
            call.raw_input = call.raw_input["arguments"]
    else:
        call.title = update.title or call.title
        call.tool = TOOLS.get(update.kind, update.kind) if update.kind else call.tool
    call.begun = call.begun or update.status in ("in_progress", "completed", "failed")


def given_tool(update: SessionUpdate, tools: frozenset[str]) -> str:
    """Return which of the tools that we gave the agent a call is of; empty if it is another one.

    The agent itself must say so, and not the model: by the whole title of a call of no other kind, whose title would
    be a command line or a description, by the name of the tool beside it, or by server and tool instead of arguments.
    """
    raw = update.raw_input if isinstance(update.raw_input, dict) else {}
    for tool in tools:
        titles = [form.format(server=SERVER, tool=tool) for form in GIVEN_TITLES]
        if update.title in titles and update.kind in (None, "", "other"):
            return tool
        if any(name in titles for name in _tool_names(update.meta)):
            return tool
        if set(raw) == {"server", "tool", "arguments"} and (raw["server"], raw["tool"]) == (SERVER, tool):
            return tool
    return ""


def _tool_names(meta: Any) -> list[object]:
    """Return the names that agents give the tool of a call, beside the call itself."""
    if not isinstance(meta, dict):
        return []
    inner = [value for value in meta.values() if isinstance(value, dict)]
    return [one.get("toolName") for one in (meta, *inner)]


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
        result = content.get("result") if isinstance(content, dict) else None
        if isinstance(result, dict) and isinstance(result.get("content"), list):  # of a tool of an MCP server
            return "\n".join(filter(None, (text_of(piece) for piece in result["content"])))
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
