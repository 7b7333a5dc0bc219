"""A person approved one call. An agent, or whoever changes files meanwhile, tries to have another one carried out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgspec
import pytest

from holdfast.clock import SystemClock
from holdfast.domain.commands import AnswerWait
from holdfast.domain.errors import Rejected
from holdfast.domain.events.parts import Call, ShownArgument
from holdfast.domain.events.session import ToolCallStarted, WaitAnswered, WaitOpened
from holdfast.rules.command_lines import rule_to_offer
from holdfast.runtime.permissions import Allowed, check_permission
from holdfast.runtime.tools import file_tools
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.terminal import command_tools
from holdfast.runtime.tools.tool import AnyTool, ToolOutput
from holdfast.settings import Policy
from holdfast.tasks.commands import CommandTasks
from holdfast.tasks.queries import TaskQueries
from tests.actors import person
from tests.attacks.rules import policy
from tests.domain.book import Book

TOOLS: dict[str, AnyTool] = {
    tool.name: tool
    for tool in (*file_tools(), *command_tools(cast(CommandTasks, None), cast(TaskQueries, None), SystemClock()))
}


class Desk:
    """A turn with one call, and a person who is asked about it."""

    def __init__(self, cwd: Path, tool: str, /, **arguments: object) -> None:
        self.book = Book("hello").begin().answer("", tool)
        assert self.book.session.turn is not None
        [open_call] = self.book.session.turn.open_calls.values()
        self.call = Call(call=open_call.call.call, tool=tool, arguments=json.dumps(arguments))
        self.context = ToolContext(cwd)

    def ask(self, **changed: object) -> Allowed | ToolOutput | WaitOpened:
        """What is said to the call, or to the same one with other arguments."""
        arguments = json.dumps(json.loads(self.call.arguments) | changed)
        call = msgspec.structs.replace(self.call, arguments=arguments)
        return check_permission(self.book.session, call, tools=TOOLS, rules={}, context=self.context)

    def wait(self, **changed: object) -> WaitOpened:
        found = self.ask(**changed)
        assert isinstance(found, WaitOpened)
        return found

    def answer(self, word: str, wait: WaitOpened | None = None) -> None:
        """The person's word, as the gateway takes it."""
        wait = wait or self.wait()
        self.book.write(wait)
        self.book.tell(AnswerWait(wait=wait.wait, answer=word))

    def permitted(self, **changed: object) -> Allowed:
        found = self.ask(**changed)
        assert isinstance(found, Allowed), found
        return found


def shown(wait: WaitOpened) -> dict[str, str]:
    return {argument.name: argument.value for argument in wait.shown}


@pytest.mark.parametrize("answer", ["allow", "call"])
@pytest.mark.parametrize(
    "changed",
    [
        {"command": "make test "},
        {"cwd": "sub"},
        {"stdin": True},
        {"background": True},
        {"lifetime": "persist"},
        {"timeout": 7},
        {"notify": True},
    ],
)
def test_an_approval_is_for_every_argument(tmp_path: Path, answer: str, changed: dict[str, object]) -> None:
    (tmp_path / "sub").mkdir()
    desk = Desk(tmp_path, "terminal", command="make test")
    desk.answer(answer)
    desk.permitted()
    desk.permitted(timeout=120)  # the same, said in full
    again = desk.wait(**changed)
    assert "It has changed since it was approved." in again.reason


def test_an_approval_is_for_one_directory(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "terminal", command="make test")
    desk.answer("call")
    desk.context = replace(desk.context, cwd=tmp_path.parent)
    desk.wait()


def test_an_approval_is_for_the_directory_that_a_link_led_to(tmp_path: Path) -> None:
    for name in ("shown", "other"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to("shown")
    desk = Desk(tmp_path, "terminal", command="make", cwd="link")
    desk.answer("call")
    permitted = desk.permitted()
    link.unlink()
    link.symlink_to("other")
    assert "other" in shown(desk.wait())["cwd"]
    with pytest.raises(ToolFailed, match="shown was allowed"):  # also between the look and the start
        permitted.context.resolve("link")


def test_an_answer_without_a_digest_approves_nothing(tmp_path: Path) -> None:
    """Such as one that was written before there were any."""
    desk = Desk(tmp_path, "terminal", command="make test")
    wait = desk.wait()
    desk.book.write(wait, WaitAnswered(turn=1, wait=wait.wait, answer="allow", by=person("ann")))
    desk.wait()


def test_every_argument_is_shown_long_ones_cut(tmp_path: Path) -> None:
    wait = Desk(tmp_path, "terminal", command="echo " + "x" * 6_000, stdin=True).wait()
    assert [argument.name for argument in wait.shown] == [
        "command", "timeout", "background", "cwd", "lifetime", "notify", "stdin",
    ]  # fmt: skip
    command = wait.shown[0]
    assert (len(command.value), command.left_out, command.usual) == (4_000, 2_005, False)
    assert ShownArgument(name="cwd", value=str(tmp_path)) in wait.shown
    assert ShownArgument(name="stdin", value="true") in wait.shown
    assert ShownArgument(name="background", value="false", usual=True) in wait.shown


def test_typing_into_a_command_shows_the_task_and_the_text(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "process", action="write", task="abc", text="yes\n")
    assert shown(desk.wait()).items() >= {"action": "write", "task": "abc", "text": "yes\n"}.items()
    desk.answer("call")
    desk.permitted()
    desk.wait(text="no\n")
    desk.wait(task="abd")


def test_a_change_of_a_file_is_shown_as_a_diff_and_bound_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    desk = Desk(tmp_path, "edit", path="a.txt", old="two", new="three")
    wait = desk.wait()
    assert shown(wait)["diff"] == "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    assert "old" not in shown(wait)
    desk.answer("allow", wait)
    path.write_text("zero\none\ntwo\n")
    again = desk.wait()
    assert "+three" in shown(again)["diff"]
    assert "It has changed since it was approved." in again.reason
    desk.answer("allow", again)
    assert desk.permitted().context.approved_digest


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("write", {"path": "a.txt", "content": "new\n"}), ("edit", {"path": "a.txt", "old": "old", "new": "new"})],
)
async def test_a_file_that_changes_after_the_last_look_is_not_touched(
    tmp_path: Path, tool: str, arguments: dict[str, str]
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    desk = Desk(tmp_path, tool, **arguments)
    desk.answer("allow")
    permitted = desk.permitted()
    path.write_text("old, and what somebody else wrote\n")
    result = await permitted.tool.call(permitted.context, desk.call.arguments)
    assert result.outcome == "failed"
    assert "was changed after the approval" in result.output
    assert path.read_text() == "old, and what somebody else wrote\n"


async def test_promise_1_a_write_that_a_crash_cut_is_repeated_without_asking_again(tmp_path: Path) -> None:
    """It may be the call itself that changed the file; its arguments are still those that were approved."""
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    desk = Desk(tmp_path, "write", path="a.txt", content="new\n")
    desk.answer("allow")
    desk.book.write(ToolCallStarted(turn=1, call=desk.call.call, tool="write", effect="idempotent"))
    path.write_text("new\n")
    permitted = desk.permitted()
    assert (await permitted.tool.call(permitted.context, desk.call.arguments)).outcome == "done"
    desk.wait(content="something else")


def test_a_new_file_is_shown_as_one_and_a_huge_one_is_not_compared(tmp_path: Path) -> None:
    assert shown(Desk(tmp_path, "write", path="a", content="x\n").wait())["diff"].startswith("--- (new file)\n+++ a\n")
    (tmp_path / "big").write_text("x\n" * 600_000)
    wait = Desk(tmp_path, "write", path="big", content="x\n").wait()
    assert "too large to be compared" in shown(wait)["diff"]
    assert shown(wait)["content"] == "x\n"


def test_nobody_is_asked_about_an_edit_that_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    found = Desk(tmp_path, "edit", path="a", old="y", new="z").ask()
    assert isinstance(found, ToolOutput)
    assert "not in a" in found.output


def test_this_very_call_is_allowed_in_the_session_and_no_other(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "terminal", command="git status -s")
    desk.answer("call")
    later = Call(call="1.9.0", tool="terminal", arguments=desk.call.arguments)
    other = Call(call="1.9.1", tool="terminal", arguments=json.dumps({"command": "git status"}))
    session, context = desk.book.session, desk.context
    assert isinstance(check_permission(session, later, tools=TOOLS, rules={}, context=context), Allowed)
    assert isinstance(check_permission(session, other, tools=TOOLS, rules={}, context=context), WaitOpened)
    denied = check_permission(session, later, tools=TOOLS, rules={"terminal:git *": "deny"}, context=context)
    assert isinstance(denied, ToolOutput)


def test_a_command_with_any_arguments_is_allowed_in_the_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "terminal", command="git status -s")
    wait = desk.wait()
    assert (wait.pattern, wait.choices) == ("terminal:git status *", ["allow", "call", "session", "always", "deny"])
    desk.answer("session", wait)
    desk.permitted(command="git status", cwd=".")
    desk.wait(command="git status; id")
    desk.wait(command="git push")


def test_there_is_no_rule_for_a_line_that_is_too_long_for_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "terminal", command="echo $(date) " + "x" * 600)
    wait = desk.wait()
    assert (wait.pattern, wait.choices) == ("", ["allow", "call", "deny"])
    with pytest.raises(Rejected, match="No rule"):
        desk.answer("always", wait)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ls -la", "ls *"),
        ("git status -s", "git status *"),
        ("pytest -q tests", "pytest -q tests"),
        ("rg --files", "rg --files"),
        ("holdfast tasks", "holdfast tasks"),
        ("cp a b", "cp a b"),
        ("systemctl status nginx", "systemctl status *"),
        ("git", "git"),
        ("git --version", "git --version"),
        ("git -c alias.x='!id' x", "git -c alias.x='!id' x"),
        ("git x", "git x"),
        ("sh -c id", "sh -c id"),
        ("bash x.sh", "bash x.sh"),
        ("python3 -m http.server", "python3 -m http.server"),
        ("python3.11 x.py", "python3.11 x.py"),
        ("env ls", "env ls"),
        ("xargs ls", "xargs ls"),
        ("sudo ls", "sudo ls"),
        ("time ls", "time ls"),
        ("find . -name x", "find . -name x"),
        ("make test", "make test"),
        ("npm test", "npm test"),
        ("tar xf a.tar", "tar xf a.tar"),
        ("awk '{print}'", "awk '{print}'"),
        ("./run.sh", "./run.sh"),
        ("ls; id", "ls; id"),
        ("ls > x", "ls > x"),
        ("ls $X", "ls $X"),
        ("ls *", "ls [*]"),
        ("l's' x", "ls *"),
        ("'a b' x", "'a b' x"),
        ("'[' x", "'[[]' x"),
        ("FOO=1 ls", "FOO=1 ls"),
    ],
)
def test_the_rule_that_is_offered_allows_what_it_says_and_no_more(line: str, offered: str) -> None:
    assert rule_to_offer(line) == offered
    rules: dict[str, Policy] = {f"terminal:{offered}": "allow"}
    assert policy(line, rules) == "allow"
    for other in (f"{line}; id", f"{line} $(id)", f"{line}\nid", f"env {line}", "id", f"PATH=x {line}"):
        assert policy(other, rules) == "ask", other
