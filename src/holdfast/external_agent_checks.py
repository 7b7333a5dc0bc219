"""What is wrong with the external agent of a profile, and what would be right. Pure."""

from __future__ import annotations

import re

from holdfast.external_agents import CATALOGUE, PROMPT, SESSION, ExternalAgent
from holdfast.settings import ProfileSettings

PLACEHOLDER = re.compile(r"\{\w+\}")
HOW_TO_ALLOW = (
    'add sandbox = "on" to run it in the sandbox, or unrestricted = true if it may do whatever you may do yourself.'
)
Wrong = tuple[str, str]
"""The key, and what would be right."""


def agent_problem(profile: ProfileSettings) -> Wrong | None:
    """Return what is wrong with the external agent of a profile."""
    names = ", ".join(CATALOGUE)
    if profile.agent and profile.agent not in CATALOGUE:
        return "agent", f"is {profile.agent!r}; write one of: {names}; or give its command as argv."
    if profile.resume_argv and profile.driver_name != "command":
        return "resume_argv", 'is for a command-line agent; write driver = "command".'
    if profile.driver_name == "builtin":
        given = "agent" if profile.agent else "argv" if profile.argv else ""
        return (given, 'is for an external agent; write driver = "acp".') if given else None
    if not profile.agent and not profile.argv:
        return "driver", f'= "{profile.driver_name}" needs an agent (one of: {names}) or an argv.'
    known = CATALOGUE.get(profile.agent)
    if profile.driver_name == "command":
        return _command_problem(profile, known) or _rules_problem(profile)
    return None if known is None or profile.mode not in known.unrestricted else _unrestricted_problem(profile, "mode")


def _command_problem(profile: ProfileSettings, known: ExternalAgent | None) -> Wrong | None:
    if known is None:
        return _template_problem(profile) or _unrestricted_problem(profile, "argv")
    if known.command is None:
        names = ", ".join(name for name, agent in CATALOGUE.items() if agent.command is not None)
        return "driver", f'= "command" is known for: {names}; write "acp", or leave agent out and give argv.'
    if profile.resume_argv or any(PLACEHOLDER.search(word) for word in profile.argv):
        key = "resume_argv" if profile.resume_argv else "argv"
        return key, f"is known for {known.name}: argv is its program alone; leave agent out to give the whole command."
    mode = known.command.mode(profile.mode)
    if mode is None:
        there = ", ".join(mode.name for mode in known.command.modes)
        return "mode", f"is {profile.mode!r}; the modes of {known.name} as a command are: {there}."
    return _unrestricted_problem(profile, "mode") if mode.name in known.unrestricted else None


def _template_problem(profile: ProfileSettings) -> Wrong | None:
    """Return what is wrong with the command of an agent that is not in the catalogue."""
    for key, argv in (("argv", profile.argv), ("resume_argv", profile.resume_argv)):
        unknown = {found for word in argv for found in PLACEHOLDER.findall(word)} - {PROMPT, SESSION}
        if unknown:
            return key, f"has {sorted(unknown)[0]}; only {PROMPT} and {SESSION} are replaced."
    if profile.mode:
        return "mode", "is for agents of the catalogue; write its flags into argv."
    if profile.resume_argv:
        for key, argv in (("resume_argv", profile.resume_argv), ("argv", profile.argv)):
            if not any(SESSION in word for word in argv):
                return key, f"needs {SESSION}, the ID of the session that is continued; Holdfast chooses it."
    return None


def _unrestricted_problem(profile: ProfileSettings, key: str) -> Wrong | None:
    """Return that nothing would limit the agent, unless somebody wants that or a sandbox does."""
    if profile.unrestricted or profile.sandbox == "on":
        return None
    what = f"= {profile.mode!r} lets the agent act" if key == "mode" else "is a command that acts"
    return key, f"{what} without asking, and nothing limits it; {HOW_TO_ALLOW}"


def _rules_problem(profile: ProfileSettings) -> Wrong | None:
    """Return that a rule would not be applied: a command asks nobody."""
    rule = next((rule for rule, policy in profile.tools.items() if policy != "allow"), None)
    if rule is None:
        return None
    return (
        "tools",
        f'has a rule for {rule!r}, but a command-line agent asks nobody; remove it, or write driver = "acp".',
    )
