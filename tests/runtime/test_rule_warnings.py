"""Which rules `holdfast config check` warns of."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.board.worker_tools import WorkerTools
from holdfast.clock import SystemClock
from holdfast.rules.warnings import TOOLS, rule_warnings
from holdfast.runtime.tools import file_tools
from holdfast.runtime.tools.delegate import Delegate
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.recall import Recall
from holdfast.runtime.tools.terminal import command_tools
from holdfast.runtime.tools.tool import AnyTool
from holdfast.settings import DEMO_PROFILE, Policy, ProfileSettings, Settings


def warnings(tools: dict[str, Policy]) -> list[str]:
    profiles = {"coder": ProfileSettings(model="openai:x", tools=tools, mcp=["files"]), "demo": DEMO_PROFILE}
    return rule_warnings(Settings(profiles=profiles))


@pytest.mark.parametrize(
    ("pattern", "policy", "says"),
    [
        ("*", "allow", "every command"),
        ("terminal", "allow", "every command"),
        ("terminal:*", "allow", "any program"),
        ("terminal:python *", "allow", "runs any code"),
        ("terminal:python3.11 *", "allow", "runs any code"),
        ("terminal:bash *", "allow", "runs any code"),
        ("terminal:env *", "allow", "starts other commands"),
        ("terminal:sudo *", "allow", "starts other commands"),
        ("terminal:source *", "allow", "starts other commands"),
        ("terminal:git *", "allow", "hooks"),
        ("terminal:make *", "allow", "runs other programs"),
        ("terminal:find *", "allow", "runs other programs"),
        ("terminal:", "allow", "names no command"),
        ("terminal:rm -rf *", "deny", "terminal:rm *"),
        ("write:**", "allow", "every file"),
        ("wrte", "allow", "there is no tool 'wrte'"),
        ("mail__send", "allow", "no MCP server 'mail'"),
    ],
)
def test_a_rule_that_says_more_or_less_than_it_seems(pattern: str, policy: Policy, says: str) -> None:
    [warning] = warnings({pattern: policy})
    assert warning.startswith(f'profiles.coder.tools: "{pattern}" = "{policy}": ')
    assert says in warning


def test_a_profile_that_is_named_demo_is_checked_if_it_has_a_real_model() -> None:
    profile = ProfileSettings(model="openai:x", tools={"terminal": "allow"})
    [warning] = rule_warnings(Settings(profiles={"demo": profile}))
    assert warning.startswith("profiles.demo.tools: ")


def test_an_allowed_command_that_is_denied_too() -> None:
    [warning] = warnings({"terminal:git status *": "allow", "terminal:git *": "deny"})
    assert "never applies, since terminal:git * is denied" in warning


def test_a_denial_of_another_command_is_no_warning() -> None:
    assert warnings({"terminal:git status": "allow", "terminal:rm *": "deny"}) == []


@pytest.mark.parametrize(
    ("pattern", "policy"),
    [
        ("*", "ask"),
        ("*", "deny"),
        ("read", "allow"),
        ("write:docs/**", "allow"),
        ("files__*", "allow"),
        ("files__read", "allow"),
        ("terminal:git status *", "allow"),
        ("terminal:make test", "allow"),
        ("terminal:python3 -m pytest", "allow"),
        ("terminal:ls *", "allow"),
        ("terminal:rm *", "deny"),
    ],
)
def test_a_rule_that_means_what_it_says(pattern: str, policy: Policy) -> None:
    assert warnings({pattern: policy}) == []


def test_every_tool_is_known() -> None:
    none: Any = None  # they are only looked at
    tools: list[AnyTool] = [*file_tools(), QUESTION, *command_tools(none, none, SystemClock())]
    tools += [Delegate(none, none, none).tool, Recall(none).tool, *WorkerTools(none, none, none, none).tools]
    assert {tool.name for tool in tools} | {"inbox"} == TOOLS


def test_a_rule_that_another_one_overrides_for_commands_is_no_danger() -> None:
    assert warnings({"*": "allow", "terminal": "deny"}) == []
