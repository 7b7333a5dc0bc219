"""Whether a tool call may be carried out now: yes, no, or somebody must be asked first.

Rules are `allow`, `ask` or `deny` by pattern: `write`, `write:docs/*`, `github__*`, `*`. The longest
pattern that fits wins; without a rule, what changes nothing is allowed and the rest is asked for, as is every tool
of a server. They are looked up anew for every call, so a permission that was taken away is gone also after a crash.

How patterns are compared with paths: `rule_patterns.py`; with command lines: `command_rules.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from posixpath import join, split

import msgspec

from holdfast.domain.events import Call, WaitOpened
from holdfast.domain.rights import RightsLayer, strictest
from holdfast.domain.session import Session, Turn
from holdfast.domain.step import wait_id
from holdfast.runtime.command_rules import line_policy, split_rules
from holdfast.runtime.rule_patterns import fits, literally
from holdfast.runtime.shell_line import Redirection
from holdfast.runtime.tools.place import Place, ToolFailed
from holdfast.runtime.tools.question import QUESTION, QuestionArguments
from holdfast.runtime.tools.tool import AnyTool, Result, Tool, bounded, effect_of, failure
from holdfast.settings import Policy

SHOWN = 2_000
NAME_SHOWN = 100
ARGUMENTS_SHOWN = 300
MOVES = re.compile(r"\b(cd|pushd|popd|chdir)\b")
"""A command that changes the directory: what a relative path behind it means is not known."""


class WorkingDirectory(msgspec.Struct, frozen=True):
    """The argument of a command that says where it runs."""

    cwd: str = "."


@dataclass(frozen=True, slots=True)
class Permitted:
    """The tool may be run, on what was looked at and nothing else."""

    tool: AnyTool
    place: Place


def permission(
    session: Session,
    call: Call,
    *,
    tools: dict[str, AnyTool],
    rules: dict[str, Policy],
    place: Place,
    limits: Sequence[RightsLayer] = (),
    handed_to: str = "",
) -> Permitted | Result | WaitOpened:
    """The tool to run, the result without running it, or the wait for a person.

    `limits` are the rules of the agents that this one descends from: the strictest of all wins. `handed_to` is the
    other profile that would act because of this call, if there is one.
    """
    turn = session.turn
    tool = tools.get(call.tool)
    if tool is None or turn is None:
        return Result("failed", f"There is no tool {call.tool[:NAME_SHOWN]!r}; there is: {', '.join(sorted(tools))}.")
    try:
        subject = tool.subject(place, call.arguments)
    except (ToolFailed, OSError) as error:
        return failure(error)  # whoever allows a call that cannot be carried out would allow something else
    answer = turn.answers.get(call.call)
    if tool.name == QUESTION.name and answer is not None:
        return Result("done", "\n".join(filter(None, (answer.answer, answer.note))))
    policy: Policy = "allow"
    for profile, known in [(session.profile, rules), *((layer.profile, layer.rules) for layer in limits)]:
        found = rule_policy(tool, call, subject, known, place=place, granted=session.allowed)
        if handed_to:
            found = strictest((found, _hand_over_policy(tool, handed_to, known, session.allowed)))
        if found == "deny":
            whose = "" if profile == session.profile else ", which created this work,"
            return Result("failed", f"The profile {profile!r}{whose} does not allow {_name(tool, subject)}.")
        policy = strictest((policy, found))
    if tool.name == QUESTION.name:
        return _question(session, turn, call)
    if policy != "allow" and answer is None:
        return _approval(session, turn, call, tool, handed_to or subject)
    if policy != "allow" and answer is not None and answer.answer == "deny":
        return Result("failed", f"{answer.by} did not allow it. {answer.note}".strip())
    return Permitted(tool, replace(place, only=subject if isinstance(tool, Tool) and tool.about == "path" else ""))


def rule_policy(
    tool: AnyTool,
    call: Call,
    subject: str,
    rules: dict[str, Policy],
    *,
    place: Place,
    granted: Collection[str] = (),
) -> Policy:
    """What one set of rules says of one call. `granted` are the patterns that a person allowed for the session."""
    if isinstance(tool, Tool) and tool.about == "command":
        return _command_policy(tool, call, subject, rules, place=place, granted=granted)
    fitting = [pattern for pattern, rule in rules.items() if fits(pattern, tool.name, subject, rule)]
    policy = _longest(fitting, rules) if fitting else _usual(tool, call)
    if policy == "ask" and any(fits(pattern, tool.name, subject) for pattern in granted):
        return "allow"
    return policy


def _hand_over_policy(tool: AnyTool, profile: str, rules: dict[str, Policy], granted: Collection[str]) -> Policy:
    """Work for another profile is asked for, unless a rule names that profile: `"kanban_create:reviewer" = "allow"`."""
    naming = [pattern for pattern, rule in rules.items() if ":" in pattern and fits(pattern, tool.name, profile, rule)]
    policy = _longest(naming, rules) if naming else "ask"
    if policy == "ask" and any(":" in pattern and fits(pattern, tool.name, profile) for pattern in granted):
        return "allow"
    return policy


def _command_policy(
    tool: AnyTool, call: Call, line: str, rules: dict[str, Policy], *, place: Place, granted: Collection[str]
) -> Policy:
    of_tool = [pattern for pattern in rules if ":" not in pattern and fnmatchcase(tool.name, pattern)]
    otherwise = _longest(of_tool, rules) if of_tool else _usual(tool, call)
    about = [(_about(pattern), rule) for pattern, rule in rules.items() if _speaks_of(pattern, tool.name)]
    given = [_about(pattern) for pattern in granted if _speaks_of(pattern, tool.name)]
    if tool.name in granted and otherwise == "ask":
        otherwise = "allow"
    known = split_rules(about, otherwise, given)
    return line_policy(line, known, lambda found: _may_redirect(found, line, call, rules, place))


def _speaks_of(pattern: str, tool: str) -> bool:
    name, colon, _ = pattern.partition(":")
    return bool(colon) and fnmatchcase(tool, name)


def _about(pattern: str) -> str:
    return pattern.partition(":")[2]


def _may_redirect(found: Redirection, line: str, call: Call, rules: dict[str, Policy], place: Place) -> bool:
    """Whether a command that is allowed may read or write this file by a redirection."""
    target = found.target
    if not target.exact:
        return False
    if target.text == "/dev/null":
        return True
    if MOVES.search(line):
        return False
    arguments = msgspec.json.decode(call.arguments, type=WorkingDirectory)
    try:
        path = place.shown(place.inside(join(arguments.cwd, target.text)))
    except (ToolFailed, OSError):
        return False
    if ".git" in path.split("/"):
        return False
    tool = "write" if found.writes else "read"
    fitting = [pattern for pattern, rule in rules.items() if fits(pattern, tool, path, rule)]
    return (_longest(fitting, rules) if fitting else "ask" if found.writes else "allow") == "allow"


def _longest(fitting: list[str], rules: dict[str, Policy]) -> Policy:
    return rules[max(fitting, key=lambda pattern: (":" in pattern, len(pattern)))]


def _usual(tool: AnyTool, call: Call) -> Policy:
    if tool.usual == "ask" and effect_of(tool, call.arguments) == "pure":
        return "allow" if isinstance(tool, Tool) else "ask"
    return tool.usual


def _name(tool: AnyTool, subject: str) -> str:
    return f"{tool.name} {subject}".strip()


def _approval(session: Session, turn: Turn, call: Call, tool: AnyTool, subject: str) -> WaitOpened:
    """The pattern is what else is allowed by `session` or `always`: its neighbours, not what lies below them."""
    about = f":{_neighbours(tool, subject)}" if subject else ""
    return WaitOpened(
        turn=turn.number,
        wait=wait_id(session, turn),
        purpose="approval",
        reason=f"{_name(tool, subject or call.arguments[:ARGUMENTS_SHOWN])} needs a permission",
        call=call.call,
        choices=["allow", "session", "always", "deny"],
        pattern=tool.name + about,
    )


def _neighbours(tool: AnyTool, subject: str) -> str:
    """Files of the same directory; of anything that is no path, such as a command, just this very one."""
    if not isinstance(tool, Tool) or tool.about != "path":
        return literally(subject)
    place, name = split(subject)
    return join(literally(place), ".*" if name.startswith(".") else "*")


def _question(session: Session, turn: Turn, call: Call) -> WaitOpened | Result:
    question = msgspec.json.decode(call.arguments, type=QuestionArguments)
    if not question.text.strip():
        return Result("failed", "The question is empty.")
    return WaitOpened(
        turn=turn.number,
        wait=wait_id(session, turn),
        purpose="question",
        reason=bounded(question.text.strip(), SHOWN),
        call=call.call,
        choices=question.choices,
    )
