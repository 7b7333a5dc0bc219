"""How cards and boards are put into words and pictures, without a gateway."""

from __future__ import annotations

import time
from typing import Any

import click
import pytest

from holdfast.cli.commands.card_log import run_part
from holdfast.cli.render.board import MOST, render_board
from holdfast.cli.render.cards import STATUSES, card_reason, without_commands
from holdfast.cli.screen import UNLIMITED, width
from holdfast.client.events import RecordReceived
from holdfast.client.lenient import convert
from holdfast.schemas.cards import CardView

NOW = int(time.time() * 1000)
CARD: dict[str, Any] = {
    "id": "ab12cd34",
    "number": 118,
    "board": "default",
    "title": "a title",
    "profile": "demo",
    "workspace": "scratch",
    "priority": 0,
    "status": "ready",
    "reason": "",
    "block_kind": "",
    "scheduled_at": None,
    "again_at": None,
    "run": 0,
    "session": "",
    "comments": 0,
    "warning": "",
    "created_by": "cli",
    "created_at": NOW,
    "moved_at": NOW,
    "updated_at": NOW,
    "version": 1,
    "why": "",
}


def view(fields: dict[str, Any]) -> CardView:
    return convert(CARD | fields, CardView)


def board(*cards: dict[str, Any], counts: int = 0) -> dict[str, Any]:
    columns = []
    for status in STATUSES:
        own = [card for card in cards if card["status"] == status]
        columns.append({"status": status, "count": counts or len(own) if own else 0, "cards": own})
    shown = {"id": "default", "title": "Board", "paused_by": "", "archived": False, "created_at": NOW}
    return {"board": shown | {"cards": len(cards)}, "columns": columns, "others": []}


@pytest.mark.parametrize(
    ("fields", "why", "said"),
    [
        ({"status": "blocked", "block_kind": "needs_input", "reason": "which?"}, "", "needs input: which?"),
        ({"status": "running", "run": 3}, "", "run 3"),
        ({"status": "todo"}, "It waits for card ab “x” (ready).", "waits for card ab “x” (ready)"),
        ({"status": "ready"}, "It has no profile (`holdfast card assign ab P`).", "has no profile"),
        ({"status": "ready", "again_at": 1, "reason": "it failed"}, "", "it failed"),
        ({"status": "done", "reason": "all\nof it"}, "", "all of it"),
        ({"status": "triage", "reason": "moved"}, "", ""),
    ],
)
def test_why_a_card_is_in_its_column_in_a_few_words(fields: dict[str, Any], why: str, said: str) -> None:
    assert card_reason(view(fields), why) == said


def test_a_card_that_cools_down_says_until_when_and_why() -> None:
    assert card_reason(view({"again_at": NOW + 3_600_000, "reason": "no network"})).startswith("pauses until ")
    assert card_reason(view({"again_at": NOW + 3_600_000, "reason": "no network"})).endswith(": no network")


def test_what_a_person_wrote_in_backticks_stays() -> None:
    why = "It is blocked (needs_input): run `make` first. `holdfast card unblock ab12` continues it."
    assert without_commands(why) == "It is blocked (needs_input): run `make` first"


@pytest.mark.parametrize("columns", [40, 80, 99, 100, 120, 160, 250])
def test_nothing_is_wider_than_the_terminal(columns: int) -> None:
    long = {"title": "ein 長い title " * 20, "reason": "x" * 400, "warning": "because " * 40, "profile": "p" * 30}
    cards = [CARD | long | {"status": status, "block_kind": "transient"} for status in STATUSES]
    found = board(*cards)
    found["board"] |= {"title": "t" * 300, "paused_by": "somebody with a long name"}
    found["others"] = [found["board"] | {"id": f"board-{number}"} for number in range(50)]
    lines = [click.unstyle(line) for line in render_board(found, columns)]
    assert max(map(width, lines)) <= columns


def test_columns_are_aligned_whatever_is_in_them() -> None:
    cards = [CARD | {"status": status, "title": "年次報告書", "profile": "p"} for status in ("todo", "ready", "done")]
    lines = [click.unstyle(line) for line in render_board(board(*cards), 120)]
    heading = next(line for line in lines if "TODO" in line)
    titles = next(line for line in lines if "年次" in line)
    starts = [width(heading[: heading.index(word)]) for word in ("TODO", "READY", "DONE")]
    found = [width(titles[:place]) for place in range(len(titles)) if titles.startswith("年次", place)]
    assert starts == found


def test_in_a_pipe_nothing_is_shortened_and_more_cards_are_named() -> None:
    title = "a very long title " * 30
    assert any(title.strip() in line for line in render_board(board(CARD | {"title": title}), UNLIMITED))
    lines = render_board(board(CARD, counts=MOST + 7), UNLIMITED)
    assert any("… 7 more: holdfast card list --status ready" in line for line in lines)


def test_nothing_in_a_title_commands_the_terminal() -> None:
    evil = CARD | {"title": "\x1b[31mred\x07", "reason": "\x1b]0;x\x07", "status": "done", "profile": "\x1b[2J"}
    for columns in (80, 120):
        shown = click.unstyle("\n".join(render_board(board(evil), columns)))
        assert "\x1b" not in shown and "\x07" not in shown


# --- a run's part of a session ----------------------------------------------------------------------


def records(*kinds: str) -> list[RecordReceived]:
    """`bound1` and `released1` are those of run 1; the rest are kinds."""
    found = []
    for version, kind in enumerate(kinds, 1):
        event: dict[str, Any] = {"kind": kind}
        for word, name in (("bound", "RunBound"), ("released", "RunReleased")):
            if kind.startswith(word):
                event = {"kind": name, "card": "c", "run": int(kind.removeprefix(word))}
        found.append(RecordReceived({"version": version, "event": event}))
    return found


def test_a_run_has_its_part_of_the_session_with_its_closing_message() -> None:
    first = ("SessionCreated", "bound1", "TurnStarted", "released1", "ModelResponded", "TurnFinished")
    second = ("bound2", "TurnStarted", "TurnFinished", "released2", "InputReceived")
    seen = records(*first, *second)

    def versions(run: int) -> list[int]:
        return [
            piece.record["version"] for piece in run_part(iter(seen), run, "c") if isinstance(piece, RecordReceived)
        ]

    assert versions(1) == [2, 3, 4, 5, 6]
    assert versions(2) == [7, 8, 9, 10]
    assert versions(3) == []
