"""What the calls of an agent are: which are of the tools that we gave it, and which files they changed."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.runtime.external.acp.content import files_of, given_tool, merge, output_of
from holdfast.runtime.external.acp.protocol import AcpLocation, SessionUpdate
from holdfast.runtime.external.steps import AnnouncedCall

TOOLS = frozenset({"kanban_show", "kanban_complete"})


@pytest.mark.parametrize(
    "update",
    [
        pytest.param({"title": "mcp__holdfast__kanban_show", "kind": "other"}, id="claude, kimi"),
        pytest.param({"title": "holdfast_kanban_show", "kind": "other"}, id="opencode"),
        pytest.param({"title": "holdfast-kanban_show", "kind": "other"}, id="copilot"),
        pytest.param({"title": "kanban_show (holdfast MCP Server)", "kind": "other"}, id="gemini"),
        pytest.param({"title": "{}", "kind": "other", "_meta": {"toolName": "mcp__holdfast__kanban_show"}}, id="qwen"),
        pytest.param(
            {"kind": "execute", "raw": {"server": "holdfast", "tool": "kanban_show", "arguments": {}}}, id="codex"
        ),
    ],
)
def test_each_agent_names_them_in_its_way(update: dict[str, Any]) -> None:
    assert given_tool(_update(update), TOOLS) == "kanban_show"
    assert given_tool(_update(update), frozenset()) == "", "outside of a run it was given none"


@pytest.mark.parametrize(
    "update",
    [
        pytest.param({"title": "mcp__holdfast__kanban_show", "kind": "execute"}, id="a command of that name"),
        pytest.param({"title": "mcp__holdfast__kanban_show", "kind": "think"}, id="a subagent with that description"),
        pytest.param({"title": "mcp__holdfast__kanban_show; rm -rf ~", "kind": "other"}, id="more than the name"),
        pytest.param({"title": "mcp__other__kanban_show", "kind": "other"}, id="another server"),
        pytest.param({"title": "mcp__holdfast__terminal", "kind": "other"}, id="another tool"),
        pytest.param({"title": "x", "raw": {"server": "holdfast", "tool": "kanban_show"}}, id="arguments of that name"),
        pytest.param(
            {"raw": {"server": "holdfast", "tool": "kanban_show", "arguments": {}, "command": "rm"}}, id="and a command"
        ),
        pytest.param({"title": "x", "_meta": "mcp__holdfast__kanban_show"}, id="a note of another form"),
    ],
)
def test_what_a_model_can_write_is_none_of_them(update: dict[str, Any]) -> None:
    assert given_tool(_update(update), TOOLS) == ""


def test_a_call_keeps_the_name_of_the_tool_when_its_title_changes() -> None:
    call = AnnouncedCall("1-a")
    merge(call, _update({"title": "kanban_complete (holdfast MCP Server)", "kind": "other"}), TOOLS)
    merge(call, _update({"title": '{"summary":"x"}', "kind": "other", "raw": {"summary": "x"}}), TOOLS)
    assert (call.tool, call.arguments) == ("kanban_complete", {"summary": "x"})


def test_the_result_of_a_tool_is_its_text() -> None:
    assert output_of({"result": {"content": [{"type": "text", "text": "Card HF-1 is done."}]}}) == "Card HF-1 is done."


@pytest.mark.parametrize(
    ("kind", "content", "files"),
    [
        ("edit", [{"type": "diff", "path": "/a"}, {"type": "diff", "path": "/a"}, {"type": "content"}], ["/a"]),
        ("edit", [], ["/read"]),
        ("move", None, ["/read"]),
        ("read", [], []),
        ("execute", [{"type": "diff", "path": "/b"}], ["/b"]),
    ],
)
def test_the_files_of_a_call_are_those_of_its_differences_else_those_where_it_edits(
    kind: str, content: object, files: list[str]
) -> None:
    assert files_of(SessionUpdate(kind=kind, content=content, locations=[AcpLocation(path="/read")])) == files


def _update(fields: dict[str, Any]) -> SessionUpdate:
    return SessionUpdate(
        title=fields.get("title"), kind=fields.get("kind"), raw_input=fields.get("raw"), meta=fields.get("_meta")
    )
