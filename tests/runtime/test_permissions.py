"""Who may do what: the longest pattern wins, a person's word counts, and what was taken away is gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.domain.events import Call, ToolCallStarted, WaitAnswered, WaitOpened
from holdfast.runtime.permissions import permission
from holdfast.runtime.tools.files import file_tools
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.tool import AnyTool, Place, Result
from holdfast.settings import Policy
from tests.domain.book import Book

TOOLS: dict[str, AnyTool] = {tool.name: tool for tool in (*file_tools(), QUESTION)}
Found = AnyTool | Result | WaitOpened


def called(tool: str, **arguments: object) -> tuple[Book, Call]:
    """A turn in which the model asked for this."""
    book = Book("hello").begin().answer("", tool)
    turn = book.session.turn
    assert turn is not None
    [open_call] = turn.open_calls.values()
    return book, Call(call=open_call.call.call, tool=tool, arguments=json.dumps(arguments))


def asked(book: Book, call: Call, rules: dict[str, Policy], cwd: Path) -> Found:
    return permission(book.session, call, tools=TOOLS, rules=rules, place=Place(cwd))


def word(found: Found) -> str:
    """allow, ask, or the outcome without running it."""
    if isinstance(found, WaitOpened):
        return "ask"
    return found.outcome if isinstance(found, Result) else "allow"


@pytest.mark.parametrize(
    ("tool", "path", "rules", "expected"),
    [
        ("read", "a", {}, "allow"),
        ("write", "a", {}, "ask"),
        ("write", "a", {"*": "allow"}, "allow"),
        ("write", "a", {"*": "allow", "write": "deny"}, "failed"),
        ("write", "docs/a.md", {"write": "ask", "write:docs/*": "allow"}, "allow"),
        ("write", "src/a.py", {"write": "ask", "write:docs/*": "allow"}, "ask"),
        ("write", "docs/../src/a.py", {"write": "ask", "write:docs/*": "allow"}, "ask"),
        ("read", ".env", {"read:.env": "deny"}, "failed"),
        ("read", "./x/../.env", {"read:.env": "deny"}, "failed"),
    ],
)
def test_rules(tmp_path: Path, tool: str, path: str, rules: dict[str, Policy], expected: str) -> None:
    book, call = called(tool, path=path, **({"content": "x"} if tool == "write" else {}))
    assert word(asked(book, call, rules, tmp_path)) == expected


def test_a_link_does_not_lead_around_a_rule(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("secret")
    (tmp_path / "innocent").symlink_to(".env")
    for path in ("innocent", str(tmp_path / ".env")):
        book, call = called("read", path=path)
        assert word(asked(book, call, {"read:.env": "deny"}, tmp_path)) == "failed"


@pytest.mark.parametrize(("answer", "expected"), [("allow", "allow"), ("session", "allow"), ("deny", "failed")])
def test_a_persons_word_counts(tmp_path: Path, answer: str, expected: str) -> None:
    book, call = called("write", path="docs/a.md", content="x")
    wait = asked(book, call, {}, tmp_path)
    assert isinstance(wait, WaitOpened)
    assert (wait.purpose, wait.call, wait.pattern) == ("approval", call.call, "write:docs/*")
    book.write(wait)
    book.write(WaitAnswered(turn=1, wait=wait.wait, answer=answer, by="ann", pattern=wait.pattern, note="because"))
    found = asked(book, call, {}, tmp_path)
    assert word(found) == expected
    if isinstance(found, Result):
        assert "because" in found.output
    later = Call(call="1.9.0", tool="write", arguments=json.dumps({"path": "docs/b.md", "content": ""}))
    assert word(asked(book, later, {}, tmp_path)) == ("allow" if answer == "session" else "ask")


def test_promise_7_a_permission_taken_away_after_a_crash_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    book, call = called("write", path="a", content="x")
    book.write(ToolCallStarted(turn=1, call=call.call, tool="write", effect="idempotent"))
    assert word(asked(book, call, {"write": "allow"}, tmp_path)) == "allow"
    assert word(asked(book, call, {"write": "deny"}, tmp_path)) == "unknown"


def test_an_unknown_tool_is_told_what_there_is(tmp_path: Path) -> None:
    book, call = called("fly", path="a")
    found = asked(book, call, {}, tmp_path)
    assert isinstance(found, Result)
    assert "read" in found.output


@pytest.mark.parametrize("arguments", [{}, {"text": " "}, {"text": "?", "choices": 3}])
def test_a_question_that_is_none(tmp_path: Path, arguments: dict[str, object]) -> None:
    book, call = called("question", **arguments)
    assert word(asked(book, call, {}, tmp_path)) == "failed"
