"""An approval as a person reads it: every argument of the call, and what each answer would allow."""

from __future__ import annotations

import json

from holdfast.cli.screen import one_line, plural
from holdfast.client.http import Json

CHOICES = {
    "allow": "this call, once",
    "call": "this very call, as often as it comes in this session",
    "session": "{rule} in this session",
    "always": "{rule} in this profile, for good",
    "deny": "not at all; a reason behind it is told to the agent",
}


def choice_note(choice: str, pattern: str) -> str:
    """What an answer would allow. The rule is shown as it would be written into the profile."""
    return CHOICES.get(choice, "").format(rule=one_line(pattern) or "this very call, as often as it comes")


def shown_lines(shown: list[Json]) -> list[str]:
    """Every argument: one a line, longer texts below their name, and at the end those that the call left out."""
    lines: list[str] = []
    for argument in shown:
        if argument["usual"]:
            continue
        inside = str(argument["value"]).rstrip("\n").split("\n")
        name = one_line(argument["name"])
        lines += [f"{name}: {inside[0]}"] if len(inside) == 1 else [f"{name}:", *(f"│ {line}" for line in inside)]
        if argument["left_out"]:
            lines.append(f"│ … {plural(argument['left_out'], 'more character')}")
    usual = [f"{one_line(one['name'])} {one_line(one['value']) or 'empty'}" for one in shown if one["usual"]]
    return [*lines, f"as usual: {', '.join(usual)}"] if usual else lines


def whole(shown: list[Json], arguments: str) -> list[Json]:
    """The same with nothing cut, from the arguments of the call as the model gave them."""
    given = json.loads(arguments) if arguments else {}
    found: list[Json] = []
    for argument in shown:
        value = given.get(argument["name"])
        if argument["left_out"] and value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            found.append(argument | {"value": text, "left_out": 0})
        else:
            found.append(argument)
            if argument["left_out"]:  # a diff: what it was made of
                names = {other["name"] for other in shown}
                left = {name: str(text) for name, text in given.items() if name not in names}
                found += [{"name": name, "value": text, "left_out": 0, "usual": False} for name, text in left.items()]
    return found


def is_cut(shown: list[Json]) -> bool:
    """Whether a value is longer than what is shown of it."""
    return any(argument["left_out"] for argument in shown)
