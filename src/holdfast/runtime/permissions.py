"""Whether a tool call may be carried out now: yes, no, or somebody must be asked first.

Rules are `allow`, `ask` or `deny` by pattern: `write`, `write:docs/*`, `github__*`, `*`. The longest
pattern that fits wins; without a rule, what changes nothing is allowed and the rest is asked for. They
are looked up anew for every call, so a permission that was taken away is gone also after a crash.
"""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from posixpath import dirname

from holdfast.domain.events import Call, WaitOpened
from holdfast.domain.session import Session, Turn
from holdfast.domain.step import wait_id
from holdfast.runtime.tools.question import QUESTION
from holdfast.runtime.tools.tool import AnyTool, Place, Result, effect_of
from holdfast.settings import Policy

SHOWN = 2_000
ARGUMENTS_SHOWN = 300


def permission(
    session: Session, call: Call, *, tools: dict[str, AnyTool], rules: dict[str, Policy], place: Place
) -> AnyTool | Result | WaitOpened:
    """The tool to run, the result without running it, or the wait for a person."""
    turn = session.turn
    tool = tools.get(call.tool)
    if tool is None or turn is None:
        return Result("failed", f"There is no tool {call.tool!r}; there is: {', '.join(sorted(tools))}.")
    answer = turn.answers.get(call.call)
    if tool.name == QUESTION.name:
        if answer is not None:
            return Result("done", "\n".join(filter(None, (answer.answer, answer.note))))
        return _question(session, turn, call)
    subject = tool.subject(call.arguments, place)
    policy = _policy(tool, call, subject, rules)
    if policy == "deny":
        denied = f"The profile {session.profile!r} does not allow {_name(tool, subject)}."
        if session.has_started(call.call):
            return Result("unknown", f"It was cut while it ran and may not be run again. {denied}")
        return Result("failed", denied)
    if policy == "allow" or any(_fits(pattern, tool.name, subject) for pattern in session.allowed):
        return tool
    if answer is None:
        return _approval(session, turn, call, tool, subject)
    if answer.answer == "deny":
        return Result("failed", f"{answer.by} did not allow it. {answer.note}".strip())
    return tool


def _policy(tool: AnyTool, call: Call, subject: str, rules: dict[str, Policy]) -> Policy:
    fitting = [pattern for pattern in rules if _fits(pattern, tool.name, subject)]
    if fitting:
        return rules[max(fitting, key=lambda pattern: (":" in pattern, len(pattern)))]
    return "allow" if effect_of(tool, call.arguments) == "pure" else "ask"


def _fits(pattern: str, name: str, subject: str) -> bool:
    tool, colon, about = pattern.partition(":")
    return fnmatchcase(name, tool) and (not colon or fnmatchcase(subject, about))


def _name(tool: AnyTool, subject: str) -> str:
    return f"{tool.name} {subject}".strip()


def _approval(session: Session, turn: Turn, call: Call, tool: AnyTool, subject: str) -> WaitOpened:
    about = _beyond(tool, subject)
    return WaitOpened(
        turn=turn.number,
        wait=wait_id(session, turn),
        purpose="approval",
        reason=f"{_name(tool, subject or call.arguments[:ARGUMENTS_SHOWN])} needs a permission",
        call=call.call,
        choices=["allow", "session", "always", "deny"],
        pattern=tool.name + about,
    )


def _beyond(tool: AnyTool, subject: str) -> str:
    """What a person is asked to allow beyond this call: a directory; of a command, just this very one."""
    if tool.name == "terminal":
        return ":" + "".join(f"[{char}]" if char in "*?[" else char for char in subject)
    place = dirname(subject)
    return f":{place}/*" if place else ":*" if subject else ""


def _question(session: Session, turn: Turn, call: Call) -> WaitOpened | Result:
    try:
        arguments = json.loads(call.arguments or "{}")
        text, choices = str(arguments["text"]).strip(), [str(choice) for choice in arguments.get("choices") or []]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Result("failed", f"A question needs a text, and may have choices: {error}.")
    if not text:
        return Result("failed", "The question is empty.")
    return WaitOpened(
        turn=turn.number,
        wait=wait_id(session, turn),
        purpose="question",
        reason=text[:SHOWN],
        call=call.call,
        choices=choices[:10],
    )
