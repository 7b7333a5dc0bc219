"""What is meant by words behind /tasks and /bg: one of the verbs, or a prompt for an agent. Pure.

A word that is a verb is that verb and never the beginning of a prompt: `/bg status` must not start an agent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

VERBS = {
    "list": "",
    "history": "",
    "show": "ID",
    "log": "ID",
    "search": "TEXT",
    "wait": "ID",
    "stop": "ID",
    "kill": "ID",
    "pin": "ID",
    "unpin": "ID",
    "prune": "[yes]",
}
SAME = {
    "status": "list",
    "ls": "list",
    "ps": "list",
    "jobs": "list",
    "tasks": "list",
    "logs": "log",
    "output": "log",
    "tail": "log",
    "info": "show",
    "cancel": "stop",
    "find": "search",
}
"""Other words that people type for them."""
ID = re.compile(r"[0-9a-fA-F]{4,32}\Z")
ALL = " ".join(VERBS)


@dataclass(frozen=True, slots=True)
class Asked:
    """One of the verbs, with what it is about."""

    verb: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Something for an agent to do in the background."""

    text: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """It cannot be meant like this; `message` says what could."""

    message: str


def tasks(words: str) -> Asked | Unclear:
    """What follows /tasks. Alone it is the list."""
    first, about = _split(words)
    if not first:
        return Asked("list")
    verb = SAME.get(first, first)
    if verb not in VERBS:
        near = get_close_matches(first, [*VERBS, *SAME], n=1)
        guess = f" Did you mean /tasks {near[0]}?" if near else ""
        return Unclear(f"There is no /tasks {first}.{guess} There is: {ALL}.")
    return _checked(verb, about, "/tasks")


def background(words: str) -> Asked | Prompt | Unclear:
    """What follows /background or /bg. `--` before a prompt says that it is one, whatever its first word."""
    first, about = _split(words)
    if first == "--":
        return Prompt(about) if about else Unclear("A prompt is missing: /bg -- PROMPT")
    if not first:
        return Asked("list")
    verb = SAME.get(first, first)
    if verb in VERBS:
        found = _checked(verb, about, "/bg")
        if isinstance(found, Unclear):
            return Unclear(f"{found.message} To let an agent do it: /bg -- {words.strip()}")
        return found
    near = get_close_matches(first, [*VERBS, *SAME], n=1, cutoff=0.75)
    if near and (not about or ID.match(about)):
        return Unclear(f"Did you mean /bg {near[0]}? To let an agent do it: /bg -- {words.strip()}")
    return Prompt(words.strip())


def _split(words: str) -> tuple[str, str]:
    first, *rest = words.strip().split(None, 1) or [""]
    return first.lower(), rest[0] if rest else ""


def _checked(verb: str, about: str, name: str) -> Asked | Unclear:
    match VERBS[verb]:
        case "ID" if not about:
            return Unclear(f"{name} {verb} needs the id of a task; /tasks lists them.")
        case "ID" if not ID.match(about):
            return Unclear(f"{name} {verb} takes the id of a task, and {about[:40]!r} is none; /tasks lists them.")
        case "ID":
            return Asked(verb, about.lower())
        case "TEXT" if not about:
            return Unclear(f"{name} {verb} needs a text.")
        case "[yes]" if about.lower().lstrip("-") not in ("", "yes"):
            return Unclear(f"{name} {verb} shows what would go, `{name} {verb} yes` deletes it.")
        case "" if about:
            return Unclear(f"{name} {verb} takes nothing; {about[:40]!r} was not understood.")
        case _:
            return Asked(verb, about)
