"""Rules of a profile that allow more than they seem to, or that never apply."""

from __future__ import annotations

from fnmatch import fnmatchcase

from holdfast.rules.command_lines import is_denied_by, literal
from holdfast.rules.programs import CHANGE_THE_SHELL, CODE, INTERPRETERS, LAUNCHERS, SHELLS, WRAPPERS, family, program
from holdfast.settings import DEMO, Policy, ProfileSettings, Settings

TOOLS = frozenset(
    {
        "read", "list", "search", "write", "edit", "question", "terminal", "process", "delegate", "recall", "inbox",
        "kanban_show", "kanban_create", "kanban_comment", "kanban_block", "kanban_unblock", "kanban_complete",
        "kanban_heartbeat", "kanban_link", "kanban_list",
    }
)  # fmt: skip
"""Every tool that is not one of an MCP server."""


def rule_warnings(settings: Settings) -> list[str]:
    """Return a sentence for each rule that a person should check."""
    found: list[str] = []
    for name, profile in settings.profiles.items():
        if name == DEMO and profile.model == DEMO:
            continue  # a script that its user writes
        for pattern, policy in profile.tools.items():
            if text := _warning(pattern, policy, profile):
                found.append(f'profiles.{name}.tools: "{pattern}" = "{policy}": {text}')
    return found


def _warning(pattern: str, policy: Policy, profile: ProfileSettings) -> str:
    tool, colon, about = pattern.partition(":")
    if unknown := _unknown_tool(tool, profile):
        return unknown
    if fnmatchcase("terminal", tool) and colon:
        return _of_command(about, policy, profile)
    if policy != "allow":
        return ""
    if fnmatchcase("terminal", tool) and pattern == _of_terminal(profile):
        return "every command is allowed, also those that read keys, delete files or send data away."
    if about.startswith("**"):
        return "every file that the profile reaches is allowed, also hidden ones such as .env; name a directory."
    return ""


def _of_terminal(profile: ProfileSettings) -> str:
    """The pattern that decides about commands that no rule names: the longest."""
    return max((rule for rule in profile.tools if ":" not in rule and fnmatchcase("terminal", rule)), key=len)


def _unknown_tool(tool: str, profile: ProfileSettings) -> str:
    if "*" in tool or "?" in tool or tool in TOOLS:
        return ""
    server, separator, _ = tool.partition("__")
    if separator and server in profile.mcp:
        return ""
    if separator:
        return f"the profile has no MCP server {server!r}, so the rule never applies."
    return f"there is no tool {tool!r}, so the rule never applies. There is: {', '.join(sorted(TOOLS))}."


def _of_command(about: str, policy: Policy, profile: ProfileSettings) -> str:
    words = about.split()
    if not words:
        return "it names no command, so the rule never applies."
    if policy != "allow":
        option = next((word for word in words[1:] if word.startswith("-")), "")
        other = "the same option can be written in other ways; leave it out and close the whole command"
        return f"{other}: terminal:{words[0]} *." if option else ""
    texts = [word for word in words if word != "*"]
    denied = [_command(rule) for rule, said in profile.tools.items() if said == "deny" and _command(rule)]
    if closing := next((rule for rule in denied if texts and is_denied_by(rule, texts)), ""):
        return f"it never applies, since terminal:{closing} is denied, and a denial always wins."
    if literal(about) is not None:
        return ""
    return _wide(words)


def _command(rule: str) -> str:
    tool, _, about = rule.partition(":")
    return about if fnmatchcase("terminal", tool) else ""


def _wide(words: list[str]) -> str:
    """What an allowing rule with a `*` lets through."""
    first, name = words[0], program(words[0])
    if literal(first) is None:
        return "any program is allowed, also interpreters that run any code."
    open_ended = len(words) == 2 and words[1] == "*"
    if name in SHELLS or family(name) in CODE:
        return f"`{name}` runs any code: with any arguments it can do anything." if words[-1] == "*" else ""
    if name in WRAPPERS or name in CHANGE_THE_SHELL:
        return f"`{name}` starts other commands; name them (terminal:{name} COMMAND *), or the user is asked."
    if name == "git" and open_ended:
        return "git runs hooks and programs that the repository's configuration names; name the commands: git status *."
    if (name in INTERPRETERS or family(name) in INTERPRETERS or name in LAUNCHERS) and open_ended:
        return f"with the right arguments `{name}` runs other programs or writes files anywhere."
    return ""
