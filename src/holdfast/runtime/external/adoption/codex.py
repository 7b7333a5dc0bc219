"""The session files of Codex: `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl` in its home. Pure.

What the model was sent is there as `response_item`, and what happened as `event_msg`. Messages of the person are taken
from the latter: in the former they are among texts that Codex adds.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from holdfast.runtime.external.adoption.history import ImportedHistory, parse_time
from holdfast.runtime.external.command.codex import inner_command, token_usage
from holdfast.runtime.external.command.items import CallEnded, json_object, number, objects, our_tool, part, text

SHELL = ("exec_command", "shell", "shell_command", "local_shell", "container.exec")
EXIT_CODE = re.compile(r"(?:Process exited with code|^Exit code:) (-?\d+)", re.M)
OUTPUT = re.compile(r"\A(?:Chunk ID: .*\n)?(?:Exit code: .*\n)?Wall time: [^\n]*\n.*?^Output:\n", re.M | re.S)


class CodexReader:
    """Reads the lines of one file, and of those that it was forked from."""

    def __init__(self, history: ImportedHistory) -> None:
        self._history = history

    def read(self, line: dict[str, Any]) -> None:
        """Add what a line contains."""
        history, payload = self._history, part(line, "payload")
        at = parse_time(text(line, "timestamp"))
        match text(line, "type"):
            case "session_meta":
                history.cwd = text(payload, "cwd") or history.cwd
            case "event_msg":
                self._event(payload, at)
            case "response_item":
                self._item(payload, at)
            case _:
                return

    def _event(self, event: dict[str, Any], at: int) -> None:
        match text(event, "type"):
            case "user_message":
                self._ask(text(event, "message"), event.get("images"), at)
            case "item_completed" if text(part(event, "item"), "type") == "UserMessage":
                blocks = objects(part(event, "item"), "content")
                images = [block for block in blocks if block.get("type") != "text"]
                self._ask("\n\n".join(text(block, "text") for block in blocks), images, at)
            case "thread_rolled_back":
                self._history.rewind(self._history.number - number(event, "num_turns"))
            case "thread_name_updated":
                self._history.title = text(event, "thread_name") or self._history.title
            case "token_count":
                total = part(part(event, "info"), "total_token_usage")
                self._history.used = token_usage(total) if total else self._history.used
            case _:
                return

    def _ask(self, said: str, images: object, at: int) -> None:
        whole = "\n\n".join(filter(None, [said.strip(), "[image]" if images else ""]))
        last = self._history.turns[-1] if self._history.turns else None
        is_repeated = last is not None and last.text == whole and not last.steps  # some versions write both events
        if whole and not is_repeated:
            self._history.ask(whole, at)

    def _item(self, item: dict[str, Any], at: int) -> None:
        history = self._history
        match text(item, "type"):
            case "message" if text(item, "role") == "assistant":
                history.say("\n\n".join(text(block, "text") for block in objects(item, "content")), at)
            case "reasoning":
                summary = "\n\n".join(text(block, "text") for block in objects(item, "summary"))
                history.say(summary, at, thinking=True)
            case "function_call":
                tool, arguments = _function(text(item, "name"), json_object(text(item, "arguments").encode()))
                history.call(text(item, "call_id"), tool, arguments, at)
            case "local_shell_call":
                tool, arguments = _function("local_shell", part(item, "action"))
                history.call(text(item, "call_id"), tool, arguments, at)
            case "custom_tool_call":
                history.call(text(item, "call_id"), our_tool(text(item, "name")), {"input": text(item, "input")}, at)
            case "web_search_call":
                id = text(item, "id") or f"search-{at}"
                history.call(id, "fetch", part(item, "action"), at)
                history.end_call(CallEnded(id, "searched"), at)
            case "function_call_output" | "custom_tool_call_output":
                history.end_call(_end(text(item, "call_id"), item), at)
            case _:
                return


def forked_from(line: dict[str, Any]) -> tuple[str, int] | None:
    """Return the session that a file continues, and before which of its lines; None if it has all of its own."""
    payload = part(line, "payload")
    before = payload.get("forked_from_ordinal_exclusive")
    is_part = text(line, "type") == "session_meta" and isinstance(before, int) and bool(line.get("ordinal"))
    return (text(payload, "forked_from_id"), before) if is_part and isinstance(before, int) else None


def is_subagent(line: dict[str, Any]) -> bool:
    """Whether the session of this first line is that of an agent which another session started."""
    source = part(line, "payload").get("source")
    return isinstance(source, dict) and "subagent" in source


def _function(name: str, arguments: dict[str, Any]) -> tuple[str, Any]:
    """Return the tool in our words, and its arguments."""
    if name not in SHELL:
        return our_tool(name), arguments
    command = arguments.get("cmd", arguments.get("command"))
    words = shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")
    return "terminal", {"command": inner_command(words), **_directory(arguments)}


def _directory(arguments: dict[str, Any]) -> dict[str, str]:
    found = text(arguments, "workdir")
    return {"cwd": found} if found else {}


def _end(id: str, item: dict[str, Any]) -> CallEnded:
    output = item.get("output")
    said = output if isinstance(output, str) else "\n".join(text(block, "text") for block in objects(item, "output"))
    whole = json_object(said.encode()) if said.startswith('{"output"') else {}  # so it was until 2026
    said = text(whole, "output") or said
    code = part(whole, "metadata").get("exit_code")
    if not isinstance(code, int) and (found := EXIT_CODE.search(said[:500])) is not None:
        code = int(found[1])
    exit_code = code if isinstance(code, int) else None
    return CallEnded(id, OUTPUT.sub("", said, count=1), failed=exit_code not in (None, 0), exit_code=exit_code)
