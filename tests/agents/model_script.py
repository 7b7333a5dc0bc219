"""What the loopback model (`loopback_model.py`) does next. The prompt is the script:

    The word is APPLE10. [[write a.txt|hello]] [[run sleep 3]] [[tool kanban_show|{}]] [[hold]]

Directives are carried out one by one: the next one is due when as many tool results as there are directives before it
followed the message. After the last one it names every word of capital letters and two digits that any message of the
person held: so a resumed agent proves what it remembers. Tools are chosen by their names and their arguments are filled
in by their schemas, since each agent brings tools of its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Wire = Literal["chat", "responses", "anthropic", "gemini"]
WRITE = ("write_file", "write", "create_file", "write_to_file", "create", "edit_file", "editor")
SHELL = (
    "bash",
    "shell",
    "run_shell_command",
    "exec_command",
    "shell_command",
    "terminal",
    "execute_command",
    "execute",
)
DIRECTIVE = re.compile(r"\[\[(\w+)\s*(.*?)\]\]")
IN_WORDS = re.compile(r"Write the text (\w+) into the file (\S+)")
"""What `holdfast agents test` says."""
WORD = re.compile(r"\b[A-Z]{4,}\d\d\b")
HARMLESS: dict[object, object] = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}


@dataclass(frozen=True, slots=True)
class Say:
    """A text, in pieces; `hold`: it ends only when the test lets it."""

    pieces: tuple[str, ...]
    hold: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """A call of one of the agent's tools."""

    tool: str
    arguments: Json
    namespace: str = ""
    """Codex groups the tools of a server."""


@dataclass(slots=True)
class Conversation:
    """What an agent sent, the same for every wire."""

    messages: list[tuple[str, str]] = field(default_factory=list)
    """`user`, `assistant` or `tool`, and the text."""
    tools: dict[str, Json] = field(default_factory=dict)
    """Schemas by name."""
    namespaces: dict[str, str] = field(default_factory=dict)


def next_action(conversation: Conversation) -> Say | Use:
    """Return what the model does next."""
    messages = [(role, IN_WORDS.sub(r"[[write \2|\1]]", text)) for role, text in conversation.messages]
    tools = conversation.tools
    told = [at for at, (role, text) in enumerate(messages) if role == "user" and DIRECTIVE.search(text)]
    directives: list[tuple[str, str]] = []
    done = 0
    if told:
        lines = [line for line in messages[told[-1]][1].splitlines() if DIRECTIVE.search(line)]
        directives = DIRECTIVE.findall(lines[-1])  # some agents join messages into one
        done = sum(role == "tool" for role, _ in messages[told[-1] + 1 :])
    words = [word for role, text in messages if role == "user" for word in WORD.findall(text)]
    answer = ("I remember: ", ", ".join(dict.fromkeys(words)) or "nothing")
    if not tools or done >= len(directives):
        return Say(answer)
    verb, rest = directives[done]
    match verb:
        case "hold":
            return Say(answer, hold=True)
        case "write" | "run":
            return _tool_call(conversation, verb, rest)
        case "tool":
            name, _, arguments = rest.partition("|")
            return _call_by_name(conversation, name, json.loads(arguments or "{}"))
        case _:
            return Say(answer)


def _call_by_name(conversation: Conversation, name: str, arguments: Json) -> Say | Use:
    """Return the call of a tool of an MCP server; agents put the name of the server before it."""
    found = next((tool for tool in conversation.tools if re.fullmatch(rf"(.*\W|.*_)?{name}", tool)), None)
    if found is None:
        return Say((f"There is no tool {name} among: {', '.join(sorted(conversation.tools))}",))
    return Use(found, arguments, conversation.namespaces.get(found, ""))


def _tool_call(conversation: Conversation, verb: str, rest: str) -> Say | Use:
    path, _, content = rest.partition("|")
    command = rest if verb == "run" else f"printf %s '{content}' > '{path}'"
    name = (_named(conversation, WRITE) if verb == "write" else None) or _named(conversation, SHELL)
    if name is None:
        return Say((f"There is no tool to {verb} with among: {', '.join(sorted(conversation.tools))}",))
    if name.lower() in SHELL:
        known = {"command": command, "cmd": command, "script": command, "description": "scripted"}
    else:
        known = dict.fromkeys(("filepath", "path", "absolutepath", "file", "filename"), path)
        known |= dict.fromkeys(("content", "contents", "filetext", "text", "newtext"), content) | {"command": "create"}
    return Use(name, _arguments(conversation.tools[name], known), conversation.namespaces.get(name, ""))


def _named(conversation: Conversation, names: tuple[str, ...]) -> str | None:
    return next((tool for name in names for tool in conversation.tools if tool.lower() == name), None)


def _arguments(schema: Json, known: dict[str, str]) -> Json:
    """Return what is known by name, and something harmless for the rest of what the tool requires."""
    arguments: Json = {}
    for name, described in (schema.get("properties") or {}).items():
        value, kind = known.get(name.lower().replace("_", "")), described.get("type")
        if value is not None:
            arguments[name] = ["bash", "-c", value] if kind == "array" else value
        elif name in (schema.get("required") or []):
            arguments[name] = described["enum"][0] if described.get("enum") else HARMLESS.get(kind, "x")
    return arguments


# --- from the wires -------------------------------------------------------------------------------


def conversation_of(wire: Wire, body: Json) -> Conversation:
    """Return what a request says."""
    found = Conversation()
    for given in body.get("tools") or []:
        space = given["name"] if given.get("type") == "namespace" else ""
        for tool in given.get("functionDeclarations") or given.get("tools") or [given.get("function", given)]:
            if tool.get("name"):
                schema = tool.get("parameters") or tool.get("input_schema") or tool.get("parametersJsonSchema") or {}
                found.tools[tool["name"]] = schema
                found.namespaces[tool["name"]] = space
    match wire:
        case "gemini":
            found.messages = [part for message in body.get("contents", []) for part in _gemini(message)]
        case "responses":
            given = body.get("input", [])
            messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
            found.messages = [part for message in messages for part in _responses(message)]
        case "chat" | "anthropic":
            found.messages = [part for message in body.get("messages", []) for part in _chat(message)]
    return found


def _chat(message: Json) -> list[tuple[str, str]]:
    content, role = message.get("content"), message["role"]
    if role == "tool" or not isinstance(content, list):
        return [(role, _text(content))]
    parts = []
    for part in content:
        if part.get("type") == "tool_result":
            parts.append(("tool", _text(part.get("content"))))
        elif part.get("type") == "text":
            parts.append((role, part["text"]))
    return parts


def _responses(message: Json) -> list[tuple[str, str]]:
    if str(message.get("type", "")).endswith("_output"):
        return [("tool", json.dumps(message.get("output")))]
    return [(message["role"], _text(message.get("content")))] if message.get("role") else []


def _gemini(message: Json) -> list[tuple[str, str]]:
    role = "assistant" if message.get("role") == "model" else "user"
    parts = message.get("parts", [])
    return [("tool", json.dumps(part["functionResponse"])) for part in parts if "functionResponse" in part] + [
        (role, part["text"]) for part in parts if part.get("text")
    ]


def _text(content: object) -> str:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
