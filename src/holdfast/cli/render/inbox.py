"""What waits for a person, as text: the list, one wait in full, and the arguments of a call before it is approved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from holdfast.cli.hints import program, with_home
from holdfast.cli.screen import ago, clean, clock, dim, one_line, plural, shorten, terminal_width, wrap_at_most
from holdfast.domain.argument_words import argument_word, default_words
from holdfast.domain.card_number import card_label

if TYPE_CHECKING:  # these bring the events with them, which `status` does not need
    from holdfast.domain.events.parts import ShownArgument
    from holdfast.schemas.inbox import Inbox, InboxEntry, WaitDetail, WaitView

KINDS = {
    "login": "log-in",
    "quota": "used-up quota",
    "resume": "interrupted turn",
    "compaction": "context without a summary",
    "card_in_review": "card in review",
    "card_not_startable": "card that cannot start",
    "session_not_startable": "session that cannot continue",
}
"""What a kind of entry is called, if not by its name."""
PLURALS = {
    "quota": "used-up quotas",
    "compaction": "contexts without a summary",
    "card_in_review": "cards in review",
    "card_not_startable": "cards that cannot start",
    "session_not_startable": "sessions that cannot continue",
}
CHOICES = {
    "allow": "this call, once",
    "call": "this exact call, any number of times in this session",
    "session": "{rule} in this session",
    "always": "{rule} in this profile, permanently",
    "deny": "refuse it; you can add a reason for the agent",
}
GRANTS = "--allow, --call, --session, --always or --deny"
WHAT_LINES, SHOWN_LINES = 6, 12


def kind_text(kind: str) -> str:
    """What a kind of entry is called."""
    return KINDS.get(kind, kind.replace("_", " "))


def counts_text(counts: dict[str, int]) -> str:
    """How many entries of each kind: 9 blocked cards, 1 question."""
    parts = [
        f"{count:,} {PLURALS[kind]}" if count != 1 and kind in PLURALS else plural(count, kind_text(kind))
        for kind, count in counts.items()
    ]
    return ", ".join(parts)


# --- the list -------------------------------------------------------------------------------------


def render_inbox(found: Inbox) -> str:
    """Every entry, with the commands that answer it."""
    if not found.entries:
        return "Nothing waits for you."
    waits = {wait.id: wait for wait in found.waits}
    return "\n\n".join("\n".join(entry_lines(entry, waits.get(entry.id))) for entry in found.entries)


def entry_lines(entry: InboxEntry, wait: WaitView | None) -> list[str]:
    """What an entry is, how long it waits, what it says, the arguments of its call, and the commands that answer it."""
    kind = click.style(kind_text(entry.kind), fg="red" if entry.kind == "failed_turn" else "yellow")
    room = max(20, terminal_width() - 2)
    lines = wrap_at_most(clean(with_home(entry.what)), room, WHAT_LINES)
    if wait is not None:
        lines += _argument_lines(wait, room)
        if wait.choices and (wait.purpose == "question" or has_own_words(wait)):
            lines += wrap_at_most(numbered(wait.choices), room, WHAT_LINES)
    lines += [dim(with_home(command)) for command in entry.commands]
    if wait is not None and wait.pattern:
        lines.append(dim(f"--session or --always instead of --allow: allows {one_line(wait.pattern)} from now on"))
    noun, _, id = entry.stream.partition("/")
    where = f" on {clean(entry.node)}" if entry.node else ""
    head = f", {ago(entry.since)}{where}: {noun} {card_label(entry.number, id)} “{one_line(entry.title)}”"
    head = shorten(head, terminal_width() - len(kind_text(entry.kind)))
    return [f"{kind}{head}", *(f"  {line}" for line in lines)]


def has_own_words(wait: WaitView) -> bool:
    """Whether the choices of an approval are those of an external agent: `call` is always one of ours."""
    return wait.purpose == "approval" and bool(wait.choices) and "call" not in wait.choices


def numbered(choices: list[str]) -> str:
    """The choices of a question with the numbers that answer it: 1 English · 2 French."""
    return " · ".join(f"{number} {one_line(choice)}" for number, choice in enumerate(choices, 1))


def _argument_lines(wait: WaitView, room: int) -> list[str]:
    lines = [clean(line) for line in shown_lines(wait.shown)]
    seen = [shorten(line, room) for line in lines[:SHOWN_LINES]]
    if is_cut(wait.shown) or seen != lines:
        seen.append(dim(f"{program()} inbox {wait.id} shows everything, with all answers"))
    return seen


# --- one wait -------------------------------------------------------------------------------------


def render_wait(found: WaitDetail) -> str:
    """A question or an approval in full, and what each answer would allow."""
    wait = found.wait
    is_approval = wait.purpose == "approval"
    lines = [clean(wait.reason), dim(f"{wait.purpose} of session {wait.session}, asked {ago(wait.opened_at)}")]
    if wait.until is not None:
        lines.append(dim(f"without an answer it is denied at {clock(wait.until)}"))
    lines += [clean(line) for line in shown_lines(_uncut(wait.shown, found.arguments))]
    for number, choice in enumerate(wait.choices, 1):
        if not is_approval:
            lines.append(f"  {number} {one_line(choice)}")
        elif has_own_words(wait):
            lines.append(f"  {one_line(choice)}")
        else:
            lines.append(f"  {one_line(choice):9}{dim(choice_note(choice, wait.pattern))}")
    return "\n".join(lines)


def choice_note(choice: str, pattern: str) -> str:
    """What an answer would allow. The rule is shown as it would be written into the profile."""
    return CHOICES.get(choice, "").format(rule=one_line(pattern) or "what the agent itself calls “always”,")


def shown_lines(shown: list[ShownArgument]) -> list[str]:
    """Every argument: one a line, longer texts below their name, and at the end those that the call left out."""
    lines: list[str] = []
    for argument in shown:
        if argument.usual:
            continue
        inside = argument.value.rstrip("\n").split("\n")
        name = argument_word(one_line(argument.name))
        if argument.name == "cwd":
            lines.append(f"in {one_line(argument.value)}")
        elif len(inside) == 1:
            lines.append(f"{name}: {inside[0]}")
        else:
            lines += [f"{name}:", *(f"│ {line}" for line in inside)]
        if argument.left_out:
            lines.append(f"│ … {plural(argument.left_out, 'more character')}")
    usual = [default_words(one_line(one.name), one_line(one.value)) for one in shown if one.usual]
    return [*lines, f"defaults: {', '.join(usual)}"] if usual else lines


def _uncut(shown: list[ShownArgument], arguments: str) -> list[ShownArgument]:
    """The same with nothing cut, from the arguments of the call as the model gave them."""
    from holdfast.domain.events.parts import ShownArgument

    given = json.loads(arguments) if arguments else {}
    names = {argument.name for argument in shown}
    found: list[ShownArgument] = []
    for argument in shown:
        value = given.get(argument.name)
        if argument.left_out and value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            found.append(ShownArgument(name=argument.name, value=text))
        else:
            found.append(argument)
            if argument.left_out:  # a diff: what it was made of
                found += [ShownArgument(name=name, value=str(given[name])) for name in given if name not in names]
    return found


def is_cut(shown: list[ShownArgument]) -> bool:
    """Whether a value is longer than what is shown of it."""
    return any(argument.left_out for argument in shown)
