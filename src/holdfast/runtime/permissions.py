"""Permissions: whether a tool call is allowed, denied, or needs the approval of a person.

Rules are `allow`, `ask` or `deny` by pattern: `write`, `write:docs/*`, `github__*`, `*`. The longest
pattern that matches wins; without a rule, the default policy of the tool holds, and tools of MCP servers ask. They
are looked up again for every call, so a permission that was revoked is gone also after a crash.

How patterns are compared with paths: `rules/patterns.py`; with command lines: `rules/command_lines.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import blake2s
from posixpath import join, split

import msgspec

from holdfast.domain.command import SessionMode
from holdfast.domain.events.actor import THE_CLOCK
from holdfast.domain.events.parts import Call, RightsLayer, ShownArgument
from holdfast.domain.events.session import WaitOpened
from holdfast.domain.next_step import wait_id
from holdfast.domain.rights import strictest
from holdfast.domain.session import Session, Turn
from holdfast.domain.text import duration
from holdfast.rules.command_lines import MAX_RULE, line_policy, rule_to_offer, split_rules
from holdfast.rules.patterns import fits, literally, policy_of_tool
from holdfast.rules.shell_line import Redirection
from holdfast.runtime.tools.context import ToolContext, ToolFailed, printable
from holdfast.runtime.tools.question import QUESTION, QuestionArguments
from holdfast.runtime.tools.tool import AnyTool, Preview, Tool, ToolOutput, bounded, default_policy_of, failed_outcome
from holdfast.settings import Policy

SHOWN = 2_000
NAME_SHOWN = 100
ARGUMENTS_SHOWN = 300
VALUE_SHOWN = 4_000
DIFF_SHOWN = 20_000
MOVES = re.compile(r"\b(cd|pushd|popd|chdir)\b")
"""Commands that change the directory: after them the meaning of a relative path is not known."""


class WorkingDirectory(msgspec.Struct, frozen=True):
    """The arguments of a call that name the directory of its command."""

    cwd: str = "."


@dataclass(frozen=True, slots=True)
class Allowed:
    """A call that may be carried out, bound to what was checked."""

    tool: AnyTool
    context: ToolContext


def check_permission(
    session: Session,
    call: Call,
    *,
    tools: dict[str, AnyTool],
    rules: dict[str, Policy],
    context: ToolContext,
    limits: Sequence[RightsLayer] = (),
    handed_to: str = "",
) -> Allowed | ToolOutput | WaitOpened:
    """The tool to run, the result without running it, or the wait for a person.

    `limits` are the rules of the agents that this one descends from: the strictest of all wins. `handed_to` is the
    other profile that would act because of this call, if there is one.
    """
    turn = session.turn
    tool = tools.get(call.tool)
    if tool is None or turn is None:
        return ToolOutput(
            f"There is no tool {call.tool[:NAME_SHOWN]!r}; there is: {', '.join(sorted(tools))}.", outcome="failed"
        )
    try:
        subject = tool.subject(context, call.arguments)
        narrowed = replace(context, approved_path=_approved_path(tool, context, call, subject))
    except (ToolFailed, OSError) as error:
        return failed_outcome(error)  # a person must not approve a call that cannot be carried out
    answer = turn.answers.get(call.call)
    if tool.name == QUESTION.name and answer is not None:
        return ToolOutput("\n".join(filter(None, (answer.answer, answer.note))))
    policy = strictest_policy(
        session, call, tool, subject, rules=rules, context=context, limits=limits, handed_to=handed_to
    )
    if isinstance(policy, ToolOutput):
        return policy
    if tool.name == QUESTION.name:
        return _question(session, turn, call)
    if policy == "allow":
        return Allowed(tool, narrowed)
    if answer is not None and answer.answer == "deny":
        refusal = "" if answer.by == THE_CLOCK else f"{answer.by} did not allow it. "
        return ToolOutput(f"{refusal}{answer.note}".strip(), outcome="failed")
    try:
        shown = shown_call(tool, narrowed, call.arguments, handed_to)
    except (ToolFailed, OSError) as error:
        return failed_outcome(error)
    opened = session.open_call(call.call)
    started = opened is not None and opened.effect is not None
    each_time = mode_policy(session.mode_in_force, call, tool, handed_to=handed_to) == "ask"
    approvals = {*(() if each_time else session.allowed_calls), *([answer.call_digest] if answer is not None else [])}
    if any(shown.is_approved_by(digest, started=started) for digest in approvals):
        return Allowed(tool, narrowed if started else replace(narrowed, approved_digest=shown.before))
    wait = _approval(session, turn, call, tool, handed_to or subject, shown)
    return msgspec.structs.replace(wait, choices=["allow", "deny"], pattern="") if each_time else wait


def strictest_policy(
    session: Session,
    call: Call,
    tool: AnyTool,
    subject: str,
    *,
    rules: dict[str, Policy],
    context: ToolContext,
    limits: Sequence[RightsLayer],
    handed_to: str,
) -> Policy | ToolOutput:
    """Return the strictest policy of all rules for a call; where they deny it, the result without running it."""
    if context.refusal:
        name = _shown_name(tool, handed_to or subject)
        return ToolOutput(f"{context.refusal} So {name} was not carried out.", outcome="failed")
    policy = mode_policy(session.mode_in_force, call, tool, handed_to=handed_to)
    if policy == "deny":
        name = _shown_name(tool, handed_to or subject)
        return ToolOutput(f"This session is read only, so {name} was not carried out.", outcome="failed")
    for profile, known in [(session.profile, rules), *((layer.profile, layer.rules) for layer in limits)]:
        found = rule_policy(tool, call, subject, known, context=context, granted=session.allowed)
        if handed_to:
            found = strictest((found, _hand_over_policy(tool, handed_to, known, session.allowed)))
        if found == "deny":
            whose = "" if profile == session.profile else ", which created this work,"
            return ToolOutput(
                f"The profile {profile!r}{whose} does not allow {_shown_name(tool, subject)}.", outcome="failed"
            )
        policy = strictest((policy, found))
    return policy


def mode_policy(mode: SessionMode, call: Call, tool: AnyTool, *, handed_to: str) -> Policy:
    """Return what the mode of a session says about a call, whatever its rules allow and a person allowed before.

    What a tool does without a rule decides: one that only reads, or reports about the own card, is allowed.
    """
    if mode == "profile" or (default_policy_of(tool, call.arguments) == "allow" and not handed_to):
        return "allow"
    return "ask" if mode == "ask" else "deny"


def _approved_path(tool: AnyTool, context: ToolContext, call: Call, subject: str) -> str:
    """Return the file that a call is about, or the directory of a command, with all links followed."""
    if not isinstance(tool, Tool) or tool.subject_field not in ("path", "command"):
        return ""
    if tool.subject_field == "path":
        return subject
    return context.display(context.resolve(msgspec.json.decode(call.arguments, type=WorkingDirectory).cwd))


def rule_policy(
    tool: AnyTool,
    call: Call,
    subject: str,
    rules: dict[str, Policy],
    *,
    context: ToolContext,
    granted: Collection[str] = (),
) -> Policy:
    """Return the policy of one set of rules for a call. `granted` are the patterns that a person allowed."""
    if isinstance(tool, Tool) and tool.subject_field == "command":
        return _command_policy(tool, call, subject, rules, context=context, granted=granted)
    matching = [pattern for pattern, rule in rules.items() if fits(pattern, tool.name, subject, rule)]
    policy = _most_specific(matching, rules) if matching else default_policy_of(tool, call.arguments)
    if policy == "ask" and any(fits(pattern, tool.name, subject) for pattern in granted):
        return "allow"
    return policy


def _hand_over_policy(tool: AnyTool, profile: str, rules: dict[str, Policy], granted: Collection[str]) -> Policy:
    """Return the policy for handing work to another profile: ask, unless a rule names that profile."""
    naming = [pattern for pattern, rule in rules.items() if ":" in pattern and fits(pattern, tool.name, profile, rule)]
    policy = _most_specific(naming, rules) if naming else "ask"
    if policy == "ask" and any(":" in pattern and fits(pattern, tool.name, profile) for pattern in granted):
        return "allow"
    return policy


def _command_policy(
    tool: AnyTool, call: Call, line: str, rules: dict[str, Policy], *, context: ToolContext, granted: Collection[str]
) -> Policy:
    otherwise = policy_of_tool(tool.name, rules) or default_policy_of(tool, call.arguments)
    about = [(_subject_pattern(pattern), rule) for pattern, rule in rules.items() if _names_tool(pattern, tool.name)]
    given = [_subject_pattern(pattern) for pattern in granted if _names_tool(pattern, tool.name)]
    if tool.name in granted and otherwise == "ask":
        otherwise = "allow"
    known = split_rules(about, otherwise, given)
    return line_policy(line, known, lambda found: _may_redirect(found, line, call, rules, context))


def _names_tool(pattern: str, tool: str) -> bool:
    name, colon, _ = pattern.partition(":")
    return bool(colon) and fnmatchcase(tool, name)


def _subject_pattern(pattern: str) -> str:
    return pattern.partition(":")[2]


def _may_redirect(found: Redirection, line: str, call: Call, rules: dict[str, Policy], context: ToolContext) -> bool:
    """Return whether an allowed command may read or write this file by a redirection."""
    target = found.target
    if not target.exact:
        return False
    if target.text == "/dev/null":
        return True
    if MOVES.search(line):
        return False
    arguments = msgspec.json.decode(call.arguments, type=WorkingDirectory)
    try:
        resolved = context.resolve(join(arguments.cwd, target.text))
        if found.writes:
            context.check_writable(resolved, "write")
    except (ToolFailed, OSError):
        return False
    path = context.display(resolved)
    tool = "write" if found.writes else "read"
    matching = [pattern for pattern, rule in rules.items() if fits(pattern, tool, path, rule)]
    return (_most_specific(matching, rules) if matching else "ask" if found.writes else "allow") == "allow"


def _most_specific(matching: list[str], rules: dict[str, Policy]) -> Policy:
    return rules[max(matching, key=lambda pattern: (":" in pattern, len(pattern)))]


def _shown_name(tool: AnyTool, subject: str) -> str:
    return f"{tool.name} {subject}".strip()


def _approval(session: Session, turn: Turn, call: Call, tool: AnyTool, subject: str, shown: ShownCall) -> WaitOpened:
    """Return the wait for an approval. Its pattern is what `session` and `always` allow; empty for this call only."""
    about = _pattern_to_grant(tool, subject)
    pattern = tool.name if not subject else f"{tool.name}:{about}" if about else ""
    again = " It has changed since it was approved." if call.call in turn.answers else ""
    name = _shown_name(tool, subject or call.arguments[:ARGUMENTS_SHOWN])
    return WaitOpened(
        turn=turn.number,
        wait=wait_id(session, turn),
        purpose="approval",
        reason=f"Allow {bounded(name, SHOWN)}?{again}",
        call=call.call,
        choices=["allow", "call", "session", "always", "deny"] if pattern else ["allow", "call", "deny"],
        pattern=pattern,
        shown=shown.arguments,
        call_digest=shown.digest,
    )


def _pattern_to_grant(tool: AnyTool, subject: str) -> str:
    """Return the pattern to grant: a command with any arguments, files of the same directory, or just this subject."""
    if isinstance(tool, Tool) and tool.subject_field == "command":
        return rule_to_offer(subject)
    if not isinstance(tool, Tool) or tool.subject_field != "path":
        return literally(subject) if len(subject) <= MAX_RULE else ""
    context, name = split(subject)
    return join(literally(context), ".*" if name.startswith(".") else "*")


def with_timeout(wait: WaitOpened, timeout_ms: int, *, now: int) -> WaitOpened:
    """Return an approval with the time at which it is denied, if the profile has a limit."""
    if wait.purpose != "approval" or not timeout_ms:
        return wait
    return msgspec.structs.replace(wait, until=now + timeout_ms, default="deny")


def timeout_note(session: Session) -> str:
    """Return the note for the agent when its approval timed out; empty for any other wait."""
    turn = session.turn
    if turn is None or turn.wait is None or turn.wait.purpose != "approval" or turn.wait.until is None:
        return ""
    waited = duration(turn.wait.until - turn.last_done.at)
    return (
        f"Nobody answered the approval within {waited} (approval_timeout of the profile), so the call was not carried "
        "out. Call it again to ask again, or continue without it."
    )


def _question(session: Session, turn: Turn, call: Call) -> WaitOpened | ToolOutput:
    question = msgspec.json.decode(call.arguments, type=QuestionArguments)
    if not question.text.strip():
        return ToolOutput("The question is empty.", outcome="failed")
    return WaitOpened(
        turn=turn.number,
        wait=wait_id(session, turn),
        purpose="question",
        reason=bounded(question.text.strip(), SHOWN),
        call=call.call,
        choices=question.choices,
    )


# --- the call as a person sees it before the approval --------------------------------------------
#
# A digest binds the approval to the call. It covers the tool, the working directory and every argument, also those that
# the call leaves out; for a change of a file also the file as it is now, for a command the directory that its `cwd`
# leads to now. What runs must have the same digest as what was shown.


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call as it is shown."""

    arguments: list[ShownArgument]
    digest: str
    before: str
    """The digest of the file that it would change; empty for all other calls."""

    def is_approved_by(self, digest: str, *, started: bool) -> bool:
        """Return whether an approval with this digest is for this call.

        Of a call that was started before a crash, the call itself may have changed the file or the directory.
        """
        call, _, _ = digest.partition("/")
        return bool(digest) and (digest == self.digest or (started and call == self.digest.partition("/")[0]))


def shown_call(tool: AnyTool, context: ToolContext, arguments: str, handed_to: str = "") -> ShownCall:
    """Return every argument in order, and the digest of all. `handed_to` is another profile that would act."""
    values = _values(tool, arguments)
    if handed_to:
        values.append(("handed to the profile", handed_to, False))
    preview = _preview(tool, context, arguments)
    described = json.dumps([tool.name, str(context.cwd), {name: value for name, value, _ in values}], sort_keys=True)
    digest = _digest(described)
    where = {name: _directory(context, value) for name, value, _ in values if name == "cwd" and isinstance(tool, Tool)}
    shown = [
        _shown(name, where.get(name, value), usual)
        for name, value, usual in values
        if preview is None or name not in preview.instead_of
    ]
    if preview is None:
        return ShownCall(shown, "/".join([digest, *map(_digest, where.values())]), "")
    return ShownCall([*shown, _bounded("diff", preview.diff, DIFF_SHOWN)], f"{digest}/{preview.before}", preview.before)


def _digest(text: str) -> str:
    return blake2s(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _values(tool: AnyTool, arguments: str) -> list[tuple[str, object, bool]]:
    """Return name, value, and whether that is the default."""
    given = json.loads(arguments or "{}")
    if not isinstance(tool, Tool):
        return [(name, value, False) for name, value in given.items()] if isinstance(given, dict) else []
    parsed = msgspec.to_builtins(tool.parse(arguments))
    return [(name, value, name not in given) for name, value in parsed.items()]


def _directory(context: ToolContext, value: object) -> str:
    """Return the full path of the directory in which a command runs."""
    try:
        return str(context.resolve(str(value)))
    except (ToolFailed, OSError):
        return str(context.cwd / str(value))


def _preview(tool: AnyTool, context: ToolContext, arguments: str) -> Preview | None:
    if not isinstance(tool, Tool) or tool.preview is None:
        return None
    return tool.preview(context, tool.parse(arguments))


def _shown(name: str, value: object, usual: bool) -> ShownArgument:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _bounded(name, text, VALUE_SHOWN, usual=usual and name != "cwd")


def _bounded(name: str, text: str, limit: int, *, usual: bool = False) -> ShownArgument:
    left_out = max(0, len(text) - limit)
    safe = text[:limit].encode(errors="backslashreplace").decode()
    return ShownArgument(name=printable(name)[:100], value=safe, left_out=left_out, usual=usual)
