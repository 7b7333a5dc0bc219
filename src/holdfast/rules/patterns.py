"""Patterns of rules: which tools they match, and which paths.

In the name of a tool `*` matches anything. In the path of an `allow` it matches one name that is not hidden, as in a
shell, and `**` any path below: `docs/*` does not allow `docs/private/key` or `docs/.netrc`. In a `deny` or an `ask` it
matches anything, so a closed directory is closed with everything below.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from holdfast.settings import Policy


def fits(pattern: str, name: str, subject: str, rule: Policy = "allow") -> bool:
    """Whether the pattern of a rule matches a call."""
    tool, colon, about = pattern.partition(":")
    if not fnmatchcase(name, tool):
        return False
    return not colon or (narrow(about).fullmatch(subject) is not None if rule == "allow" else _wide(about, subject))


def policy_of_tool(name: str, rules: dict[str, Policy]) -> Policy | None:
    """Return the policy for a tool by the rules without a subject; the longest pattern wins."""
    fitting = [pattern for pattern in rules if ":" not in pattern and fnmatchcase(name, pattern)]
    return rules[max(fitting, key=len)] if fitting else None


def _wide(pattern: str, subject: str) -> bool:
    return fnmatchcase(subject, pattern) or fnmatchcase(subject, pattern + "/*")


@lru_cache(maxsize=1_000)
def narrow(pattern: str) -> re.Pattern[str]:
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


def literally(path: str) -> str:
    """A path as a pattern that means just it, whatever its characters."""
    return re.sub(r"[*?\[]", r"[\g<0>]", path)
