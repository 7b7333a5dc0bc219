"""What all tools have in common: arguments, subjects for permissions, bounds."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from holdfast.runtime.tools import EDIT, READ, SEARCH, WRITE, file_tools
from holdfast.runtime.tools.context import ToolContext, ToolFailed, printable
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.tool import OUTPUT_LIMIT, AnyTool, bounded

from .calling import failed


def test_each_tool_declares_its_effect() -> None:
    assert {tool.name: tool.effect for tool in [*file_tools(), QUESTION]} == {
        "read": "pure",
        "list": "pure",
        "search": "pure",
        "write": "idempotent",
        "edit": "unsafe",
        "question": "pure",
    }


def test_a_tool_describes_its_arguments() -> None:
    parameters = EDIT.spec.parameters
    assert EDIT.spec.parameters is parameters, "computed once"
    assert parameters["required"] == ["path", "old", "new"]
    assert parameters["additionalProperties"] is False
    assert "exactly" in json.dumps(parameters)
    assert all(tool.spec.description for tool in file_tools())


@pytest.mark.parametrize("tool", file_tools(), ids=lambda tool: tool.name)
@pytest.mark.parametrize("arguments", ["", "{}", "[]", "nonsense", '{"road": 1}', '{"path": 7}', '{"path": "\\ud800"}'])
async def test_arguments_that_do_not_fit_are_an_outcome(tool: AnyTool, arguments: str, tmp_path: Path) -> None:
    result = await tool.call(ToolContext(tmp_path), arguments)
    if tool.name == "list" and arguments in ("", "{}"):
        assert result.outcome == "done"
    else:
        assert result.outcome == "failed"
        assert result.output.startswith("The arguments do not fit: ")


@pytest.mark.parametrize(
    "arguments", [{"path": "a", "offset": 0}, {"path": "a", "limit": -1}, {"path": "a", "offset": "7"}]
)
async def test_numbers_are_checked(arguments: dict[str, object], tmp_path: Path) -> None:
    assert (await failed(READ, tmp_path, **arguments)).startswith("The arguments do not fit: ")
    assert (await failed(SEARCH, tmp_path, pattern="")).startswith("The arguments do not fit: ")
    assert (await failed(SEARCH, tmp_path, pattern="x", limit=10**6)).startswith("The arguments do not fit: ")


def test_the_subject_of_a_call_is_where_its_path_really_leads(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / ".env").write_text("x")
    (tmp_path / "docs" / "link").symlink_to("../.env")
    context = ToolContext(tmp_path)
    for path in (".env", "./.env", "docs/../.env", str(tmp_path / ".env"), "docs/link", "missing/../.env"):
        assert WRITE.subject(context, json.dumps({"path": path, "content": ""})) == ".env"
    assert QUESTION.subject(context, json.dumps({"text": "a//b?"})) == "a//b?"
    assert SEARCH.subject(context, json.dumps({"pattern": "x"})) == "."
    for arguments in ("nonsense", json.dumps({"path": "docs/../../x", "content": ""})):
        with pytest.raises(ToolFailed):
            WRITE.subject(context, arguments)


def test_what_else_is_open_is_inside_too(tmp_path: Path) -> None:
    (tmp_path / "cwd").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "alias").symlink_to("other")
    context = ToolContext(tmp_path / "cwd", (tmp_path / "alias",))
    target = context.resolve("../other/a.txt")
    assert target == (tmp_path / "other" / "a.txt").resolve()
    assert context.display(target) == str(target)


async def test_a_question_is_not_answered_by_a_machine(tmp_path: Path) -> None:
    assert await failed(QUESTION, tmp_path, text="Which?") == "A question is answered by a person."
    many = await failed(QUESTION, tmp_path, text="Which?", choices=["x"] * 11)
    assert many.startswith("The arguments do not fit: ")


def test_a_long_text_keeps_head_and_tail() -> None:
    assert bounded("x" * OUTPUT_LIMIT) == "x" * OUTPUT_LIMIT
    text = bounded("a" * 60_000 + "b" * 60_000)
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert "[… 70000 of 120000 characters left out …]" in text


def test_a_name_that_is_no_text_can_still_be_shown() -> None:
    assert printable("a\nb\udcff ü") == "a\\nb\\udcff ü"
    msgspec.json.encode(printable("\udcff"))
