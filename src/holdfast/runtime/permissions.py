"""Whether a tool call may be carried out now: yes, no, or somebody must be asked first.

Rules are `allow`, `ask` or `deny` by pattern: `write`, `write:docs/*`, `github__*`, `*`. The longest
pattern that fits wins; without a rule, what changes nothing is allowed and the rest is asked for, as is every tool
of a server. They are looked up anew for every call, so a permission that was taken away is gone also after a crash.

In the name of a tool `*` stands for anything. In the path of an `allow` it stands for one name that is not hidden, as
in a shell, and `**` for any path below: who allows `docs/*` does not allow `docs/private/key` or `docs/.netrc`. In a
`deny` or an `ask` it stands for anything, so what is closed is closed with all that lies below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from posixpath import join, split

import msgspec

from holdfast.domain.events import Call, WaitOpened
from holdfast.domain.session import Session, Turn
from holdfast.domain.step import wait_id
from holdfast.runtime.tools.place import Place, ToolFailed
from holdfast.runtime.tools.question import QUESTION, QuestionArguments
from holdfast.runtime.tools.tool import AnyTool, Result, Tool, bounded, effect_of, failure
from holdfast.settings import Policy

SHOWN = 2_000
NAME_SHOWN = 100
ARGUMENTS_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Permitted:
    """The tool may be run, on what was looked at and nothing else."""

    tool: AnyTool
    place: Place


def permission(
    session: Session, call: Call, *, tools: dict[str, AnyTool], rules: dict[str, Policy], place: Place
) -> Permitted | Result | WaitOpened:
    """The tool to run, the result without running it, or the wait for a person."""
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
    policy = _policy(tool, call, subject, rules)
    if policy == "deny":
        return Result("failed", f"The profile {session.profile!r} does not allow {_name(tool, subject)}.")
    if tool.name == QUESTION.name:
        return _question(session, turn, call)
    allowed = policy == "allow" or any(fits(pattern, tool.name, subject) for pattern in session.allowed)
    if not allowed and answer is None:
        return _approval(session, turn, call, tool, subject)
    if not allowed and answer is not None and answer.answer == "deny":
        return Result("failed", f"{answer.by} did not allow it. {answer.note}".strip())
    return Permitted(tool, replace(place, only=subject if isinstance(tool, Tool) and tool.about == "path" else ""))


def _policy(tool: AnyTool, call: Call, subject: str, rules: dict[str, Policy]) -> Policy:
    fitting = [pattern for pattern, rule in rules.items() if fits(pattern, tool.name, subject, rule)]
    if fitting:
        return rules[max(fitting, key=lambda pattern: (":" in pattern, len(pattern)))]
    if tool.usual == "ask" and effect_of(tool, call.arguments) == "pure":
        return "allow" if isinstance(tool, Tool) else "ask"
    return tool.usual


def fits(pattern: str, name: str, subject: str, rule: Policy = "allow") -> bool:
    """Whether the pattern of a rule speaks of a call."""
    tool, colon, about = pattern.partition(":")
    if not fnmatchcase(name, tool):
        return False
    return not colon or (_narrow(about).fullmatch(subject) is not None if rule == "allow" else _wide(about, subject))


def _wide(pattern: str, subject: str) -> bool:
    return fnmatchcase(subject, pattern) or fnmatchcase(subject, pattern + "/*")


@lru_cache(maxsize=1_000)
def _narrow(pattern: str) -> re.Pattern[str]:
    """`*` and `?` within one name and not for a leading dot, `**` for any path, `[x]` for the character itself."""
    found = ""
    for piece in re.findall(r"\*\*|\[.\]|.", pattern, re.DOTALL):
        if piece == "**":
            found += ".*"
        elif piece in ("*", "?"):
            visible = r"(?!\.)" if not found or found.endswith("/") else ""
            found += visible + ("[^/]*" if piece == "*" else "[^/]")
        else:
            found += re.escape(piece[1] if len(piece) == 3 else piece)
    return re.compile(found, re.DOTALL)


def _literally(path: str) -> str:
    """A path as a pattern that means just it, whatever its characters."""
    return re.sub(r"[*?\[]", r"[\g<0>]", path)


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
        return _literally(subject)
    place, name = split(subject)
    return join(_literally(place), ".*" if name.startswith(".") else "*")


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
