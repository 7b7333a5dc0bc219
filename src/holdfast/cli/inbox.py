"""What waits for a person, as text."""

from __future__ import annotations

import click

from holdfast.cli.approvals import is_cut, shown_lines
from holdfast.cli.hints import with_home
from holdfast.cli.screen import ago, clean, dim, one_line, plural, shorten, terminal_width, wrap
from holdfast.client.http import Json

WORDS = {
    "approval": "approval",
    "question": "question",
    "resume": "interrupted turn",
    "compaction": "context without a summary",
    "blocked_card": "blocked card",
    "card_in_review": "card in review",
    "card_not_startable": "card that cannot start",
    "failed_turn": "failed turn",
}
PLURALS = {
    "compaction": "contexts without a summary",
    "card_in_review": "cards in review",
    "card_not_startable": "cards that cannot start",
}


SHOWN_LINES = 12


def entry_lines(entry: Json, shown: list[Json], pattern: str = "") -> list[str]:
    """An entry: what it is and since when, what it says, the arguments of its call, and the commands that answer it."""
    kind = click.style(word(entry["kind"]), fg="red" if entry["kind"] == "failed_turn" else "yellow")
    subject = entry["stream"].replace("/", " ")
    head = f"{kind}, {ago(entry['since'])}: {subject} “{one_line(entry['title'])}”"
    room = max(20, terminal_width() - 2)
    return [
        head,
        *(f"  {line}" for line in wrap(clean(with_home(entry["what"])), room)),
        *(f"  {line}" for line in _argument_lines(entry["id"], shown, room)),
        *(dim(f"  {with_home(command)}") for command in entry["commands"]),
        *([dim(f"  {with_home(rule)}")] if (rule := _rule_line(entry["id"], pattern)) else []),
    ]


def _rule_line(wait: str, pattern: str) -> str:
    """The rule that the wider answers to an approval would set, where there is one."""
    return f"holdfast answer {wait} --session or --always allows {one_line(pattern)}" if pattern else ""


def _argument_lines(wait: str, shown: list[Json], room: int) -> list[str]:
    lines = [clean(line) for line in shown_lines(shown)]
    seen = [shorten(line, room) for line in lines[:SHOWN_LINES]]
    cut = is_cut(shown) or seen != lines
    return [*seen, dim(with_home(f"holdfast inbox {wait} shows all of it, and every answer"))] if cut else seen


def word(kind: str) -> str:
    """A kind of entry for people; one that only a newer gateway knows is shown as it is."""
    return WORDS.get(kind, kind.replace("_", " "))


def counted(counts: dict[str, int]) -> str:
    """How many of each kind: 9 blocked cards, 1 question."""
    parts = [
        f"{count:,} {PLURALS[kind]}" if count != 1 and kind in PLURALS else plural(count, word(kind))
        for kind, count in counts.items()
    ]
    return ", ".join(parts)


def summary(found: Json) -> str:
    """The last line of the list."""
    shown, total = len(found["entries"]), found["total"]
    more = f", {shown:,} shown" if shown < total else ""
    return f"{total:,} {'entry' if total == 1 else 'entries'}{more}"
