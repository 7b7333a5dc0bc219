"""Permissions: the longest pattern wins, a person's answer is final, and removed rules no longer apply."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from holdfast.domain.events.parts import Call, Grant
from holdfast.domain.events.session import WaitAnswered, WaitOpened
from holdfast.domain.session_rules import GRANTS
from holdfast.runtime.mcp.connection import McpToolInfo
from holdfast.runtime.mcp.servers import McpClient, McpServer, McpTool
from holdfast.runtime.permissions import Allowed, check_permission
from holdfast.runtime.tools import file_tools
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.tool import AnyTool, Tool, ToolOutput
from holdfast.settings import Policy
from tests.actors import person
from tests.domain.book import Book

TOOLS: dict[str, AnyTool] = {tool.name: tool for tool in (*file_tools(), QUESTION)}
Found = Allowed | ToolOutput | WaitOpened


def called(tool: str, **arguments: object) -> tuple[Book, Call]:
    """A turn in which the model asked for this."""
    book = Book("hello").begin().answer("", tool)
    turn = book.session.turn
    assert turn is not None
    [open_call] = turn.open_calls.values()
    return book, Call(call=open_call.call.call, tool=tool, arguments=json.dumps(arguments))


def asked(book: Book, call: Call, rules: dict[str, Policy], cwd: Path) -> Found:
    return check_permission(book.session, call, tools=TOOLS, rules=rules, context=ToolContext(cwd))


def word(found: Found) -> str:
    """allow, ask, or the outcome without running it."""
    if isinstance(found, WaitOpened):
        return "ask"
    return found.outcome if isinstance(found, ToolOutput) else "allow"


class FetchArguments(msgspec.Struct, frozen=True):
    url: str


async def _fetch(_: ToolContext, arguments: FetchArguments) -> ToolOutput:
    return ToolOutput(arguments.url)


@pytest.mark.parametrize(
    ("default", "rules", "expected"),
    [("ask", {}, "ask"), ("allow", {}, "allow"), ("ask", {"fetch": "allow"}, "allow"), ("allow", {"*": "ask"}, "ask")],
)
def test_tool_that_changes_nothing_asks_if_that_is_its_default(
    default: Policy, rules: dict[str, Policy], expected: str, tmp_path: Path
) -> None:
    fetch = Tool(
        "fetch", "Get a page.", "pure", FetchArguments, _fetch, "url", default_policy=default, file_changes="none"
    )
    book, call = called("fetch", url="http://127.0.0.1/?q=secret")
    found = check_permission(book.session, call, tools={"fetch": fetch}, rules=rules, context=ToolContext(tmp_path))
    assert word(found) == expected


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
        ("write", "docs/deep/a.md", {"write:docs/*": "allow"}, "ask"),
        ("write", "docs/deep/a.md", {"write:docs/**": "allow"}, "allow"),
        ("write", "docs/.netrc", {"write:docs/*": "allow"}, "ask"),
        ("write", "docs/.netrc", {"write:docs/**": "allow"}, "allow"),
        ("write", ".env", {"write:*": "allow"}, "ask"),
        ("write", "ab", {"write:a?": "allow"}, "allow"),
        ("write", "a/", {"write:a?": "allow"}, "ask"),
        ("read", "keys/deep/a", {"read:keys/*": "deny"}, "failed"),
        ("read", "keys/.a", {"read:keys": "deny"}, "failed"),
        ("read", "keys", {"read:keys": "deny"}, "failed"),
        ("read", "keyboard", {"read:keys": "deny"}, "allow"),
        ("write", "keys/deep/a", {"write:**": "allow", "write:keys/*": "ask"}, "ask"),
        ("read", "../a", {"*": "allow"}, "failed"),
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


@pytest.mark.parametrize(
    ("path", "others", "fit"),
    [
        ("notes.txt", ["plan.txt", "docs/a.md", ".env", ".hub/hooks/pre-commit"], "plan.txt"),
        (".env", [".netrc", "plan.txt", ".hub/config"], ".netrc"),
        ("*/a", ["docs/a", "*/b", "*/.b"], "*/b"),
        ("[x]/a", ["x/a", "[x]/b"], "[x]/b"),
        ("?/**/a", ["d/e/b", "?/**/b"], "?/**/b"),
        ("docs/a.md", ["docs/b.md", "docs/deep/c.md", "docs2/a.md"], "docs/b.md"),
    ],
)
def test_allowing_a_file_for_the_session_allows_its_directory_and_no_more(
    tmp_path: Path, path: str, others: list[str], fit: str
) -> None:
    """Whatever characters a model puts into a name, they are no pattern."""
    book, call = called("write", path=path, content="x")
    wait = asked(book, call, {}, tmp_path)
    assert isinstance(wait, WaitOpened)
    book.write(wait)
    book.write(
        WaitAnswered(
            turn=1,
            wait=wait.wait,
            answer="session",
            by=person("ann"),
            grant=Grant(scope="session", rule=wait.pattern),
            call_digest=wait.call_digest,
        )
    )
    fresh, _ = called("write")
    for other in (path, *others):
        later = Call(call="1.9.0", tool="write", arguments=json.dumps({"path": other, "content": ""}))
        expected = "allow" if other in (path, fit) else "ask"
        assert word(asked(book, later, {}, tmp_path)) == expected, other
        assert word(asked(fresh, later, {wait.pattern: "allow"}, tmp_path)) == expected, "the same as a rule"


@pytest.mark.parametrize("arguments", ["{}", "nonsense", '{"path": 7, "content": ""}', "[" * 100_000])
def test_nobody_is_asked_about_a_call_that_cannot_be_carried_out(tmp_path: Path, arguments: str) -> None:
    """A yes to arguments that do not fit would be a yes to any arguments."""
    book, call = called("write")
    found = asked(book, Call(call=call.call, tool="write", arguments=arguments), {}, tmp_path)
    assert isinstance(found, ToolOutput)
    assert (found.outcome, found.output[:25]) == ("failed", "The arguments do not fit:")


async def test_what_was_allowed_is_what_is_done(tmp_path: Path) -> None:
    """A link that leads elsewhere by the time that the tool runs does not get around the permission."""
    (tmp_path / "a").write_text("a")
    (tmp_path / ".env").write_text("secret")
    (tmp_path / "link").symlink_to("a")
    book, call = called("read", path="link")
    found = asked(book, call, {"read:.env": "deny"}, tmp_path)
    assert isinstance(found, Allowed)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(".env")
    result = await found.tool.call(found.context, call.arguments)
    assert result == ToolOutput("link leads to .env now; a was allowed.", outcome="failed")


@pytest.mark.parametrize(("answer", "expected"), [("allow", "allow"), ("session", "allow"), ("deny", "failed")])
def test_an_answer_of_a_person_is_final(tmp_path: Path, answer: str, expected: str) -> None:
    book, call = called("write", path="docs/a.md", content="x")
    wait = asked(book, call, {}, tmp_path)
    assert isinstance(wait, WaitOpened)
    assert (wait.purpose, wait.call, wait.pattern) == ("approval", call.call, "write:docs/*")
    book.write(wait)
    book.write(
        WaitAnswered(
            turn=1,
            wait=wait.wait,
            answer=answer,
            by=person("ann"),
            grant=Grant(scope=GRANTS[answer], rule=wait.pattern) if answer in GRANTS else None,
            note="because",
            call_digest=wait.call_digest,
        )
    )
    found = asked(book, call, {}, tmp_path)
    assert word(found) == expected
    if isinstance(found, ToolOutput):
        assert "because" in found.output
    later = Call(call="1.9.0", tool="write", arguments=json.dumps({"path": "docs/b.md", "content": ""}))
    assert word(asked(book, later, {}, tmp_path)) == ("allow" if answer == "session" else "ask")


@pytest.mark.parametrize(("rules", "expected"), [({}, "ask"), ({"tracker__*": "allow"}, "allow")])
def test_a_server_does_not_allow_its_own_tools(tmp_path: Path, rules: dict[str, Policy], expected: str) -> None:
    """That it changes nothing is only its own word: enough to run it again after a crash, not to run it at all."""
    offered = McpToolInfo("list", "List the tickets.", {}, "pure")
    tool = McpTool("tracker__list", McpClient(McpServer(name="tracker"), 1), offered)
    book, call = called("tracker__list")
    found = check_permission(book.session, call, tools={tool.name: tool}, rules=rules, context=ToolContext(tmp_path))
    assert (tool.effect, word(found)) == ("pure", expected)


def test_a_call_of_an_unknown_tool_gets_the_list_of_tools(tmp_path: Path) -> None:
    book, call = called("fly", path="a")
    found = asked(book, call, {}, tmp_path)
    assert isinstance(found, ToolOutput)
    assert "read" in found.output


def test_a_question_can_be_denied_but_its_answer_counts(tmp_path: Path) -> None:
    book, call = called("question", text="Which?")
    assert word(asked(book, call, {"*": "deny"}, tmp_path)) == "failed"
    wait = asked(book, call, {}, tmp_path)
    assert isinstance(wait, WaitOpened)
    book.write(wait)
    book.write(WaitAnswered(turn=1, wait=wait.wait, answer="left", by=person("ann")))
    assert asked(book, call, {"*": "deny"}, tmp_path) == ToolOutput("left")


@pytest.mark.parametrize("arguments", [{}, {"text": " "}, {"text": "?", "choices": 3}, {"text": ["deep"]}])
def test_a_question_that_is_none(tmp_path: Path, arguments: dict[str, object]) -> None:
    book, call = called("question", **arguments)
    assert word(asked(book, call, {}, tmp_path)) == "failed"
