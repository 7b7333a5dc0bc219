"""The session files of Claude Code: `projects/DIRECTORY/ID.jsonl` in its home. Pure.

A line has an id and that of the line before it. Where a person went back to an earlier message, the next one follows
that, and what was said in between is no part of the conversation any more.
"""

from __future__ import annotations

import re
from typing import Any

from holdfast.runtime.external.adoption.history import ImportedHistory, parse_time
from holdfast.runtime.external.command.claude import call_ended, is_call_result
from holdfast.runtime.external.command.items import objects, our_tool, part, text

SLASH_COMMAND = re.compile(r"<command-name>(.*?)</command-name>.*?(?:<command-args>(.*?)</command-args>|$)", re.S)
NOT_SAID = ("<local-command-", "<bash-stdout>", "<bash-stderr>", "<task-notification>", "[Request interrupted by user")
"""How texts begin that Claude Code writes in the name of the person."""
SHELL_INPUT = re.compile(r"<bash-input>(.*)</bash-input>", re.S)
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}


class ClaudeReader:
    """Reads the lines of one file."""

    def __init__(self, history: ImportedHistory) -> None:
        self._history = history
        self._turn_of: dict[str, int] = {}
        """The turn that each line belongs to, by its id."""

    def read(self, line: dict[str, Any]) -> None:
        """Add what a line contains."""
        history, kind = self._history, text(line, "type")
        if kind in TITLES:
            history.title = text(line, TITLES[kind]) or history.title
        if line.get("isSidechain") is True:  # an agent that it started
            return
        history.cwd = history.cwd or text(line, "cwd")
        at = parse_time(text(line, "timestamp"))
        if kind == "user" and line.get("isMeta") is not True and line.get("isCompactSummary") is not True:
            self._user(line, at)
        elif kind == "assistant":
            self._assistant(part(line, "message"), at)
        if id := text(line, "uuid"):
            self._turn_of[id] = history.number

    def _user(self, line: dict[str, Any], at: int) -> None:
        message = part(line, "message")
        for block in objects(message, "content"):
            if is_call_result(block):
                self._history.end_call(call_ended(block), at)
        said = _said(message)
        if not said:
            return
        before = self._turn_of.get(text(line, "parentUuid"))
        if before is not None:
            self._history.rewind(before)
        self._history.ask(said, at)

    def _assistant(self, message: dict[str, Any], at: int) -> None:
        for block in objects(message, "content"):
            match block.get("type"):
                case "text":
                    self._history.say(text(block, "text"), at)
                case "thinking":
                    self._history.say(text(block, "thinking"), at, thinking=True)
                case "tool_use":
                    self._history.call(text(block, "id"), our_tool(text(block, "name")), block.get("input"), at)
                case _:
                    continue


def _said(message: dict[str, Any]) -> str:
    """Return what the person said; empty if the line is something else."""
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [_block(block) for block in objects(message, "content")]
    said = "\n\n".join(one.strip() for one in texts if one.strip())
    if said.startswith(NOT_SAID):
        return ""
    if (command := SLASH_COMMAND.search(said)) is not None and said.startswith("<command-"):
        return f"{command[1]} {command[2] or ''}".strip()
    if (shell := SHELL_INPUT.fullmatch(said)) is not None:
        return f"!{shell[1]}"
    return said


def _block(block: dict[str, Any]) -> str:
    return "[image]" if block.get("type") == "image" else text(block, "text") if block.get("type") == "text" else ""
