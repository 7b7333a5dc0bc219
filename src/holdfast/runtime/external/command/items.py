"""What a line of a command-line agent says, the same for every format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.domain.events.external_agent import PlanEntry
from holdfast.domain.events.parts import Usage

TOOLS = {
    **dict.fromkeys(("read", "read_file", "read_many_files", "ls", "list", "list_directory"), "read"),
    **dict.fromkeys(("grep", "glob", "grep_search", "search_file_content"), "search"),
    **dict.fromkeys(("write", "write_file", "edit", "multiedit", "notebookedit", "notebook_edit"), "write"),
    **dict.fromkeys(("replace", "patch", "apply_patch"), "write"),
    **dict.fromkeys(("bash", "run_shell_command"), "terminal"),
    **dict.fromkeys(("webfetch", "web_fetch", "websearch", "google_web_search"), "fetch"),
}
"""The tool whose name in our words is that of an agent's own; any other keeps its name."""
PATHS = ("file_path", "filePath", "path", "absolute_path", "notebook_path")


@dataclass(frozen=True, slots=True)
class SessionNamed:
    """The agent's own id of the session that it works in."""

    id: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class TextAdded:
    """The next piece of an answer, or of a thought."""

    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class TextWhole:
    """A whole text; pieces of it may have come before."""

    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class CallBegun:
    """A call that the agent makes; it may be said again."""

    id: str
    tool: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The end of a call."""

    id: str
    output: str
    failed: bool = False
    files: tuple[str, ...] = ()
    """The files that it changed, if the line says so."""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class PlanStated:
    """The whole plan."""

    entries: list[PlanEntry]


@dataclass(frozen=True, slots=True)
class TokensUsed:
    """What the last request cost."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Answered:
    """The agent is done with the prompt."""

    usage: Usage | None = None
    """What the turn cost, where it is said at its end."""
    total: Usage | None = None
    """What all turns of the session have cost together, where only that is said."""
    text: str = ""
    """The last text, if it was not said before."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The agent reports that it cannot continue."""

    message: str


Item = SessionNamed | TextAdded | TextWhole | CallBegun | CallEnded | PlanStated | TokensUsed | Answered | Failed

_decode = msgspec.json.Decoder().decode


def json_object(line: bytes) -> dict[str, Any]:
    """Return the object of a line; empty if it is none: some agents print other things, too."""
    try:
        found = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def part(value: Any, name: str) -> dict[str, Any]:
    """Return an object in an object; empty if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def text(value: Any, name: str) -> str:
    """Return a text in an object; empty if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def number(value: Any, name: str) -> int:
    """Return a whole number that is not below 0; 0 if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return max(0, found) if isinstance(found, int) and not isinstance(found, bool) else 0


def objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects of a list in an object."""
    found = value.get(name) if isinstance(value, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def our_tool(name: str) -> str:
    """Return the name of a tool in our words."""
    return TOOLS.get(name.lower(), name or "other")


def files_of(tool: str, arguments: Any) -> tuple[str, ...]:
    """Return the files that a call changes, by its arguments."""
    if tool != "write" or not isinstance(arguments, dict):
        return ()
    return tuple(path for name in PATHS if isinstance(path := arguments.get(name), str) and path)
