"""A board as its columns: side by side where there is room, below each other where there is not."""

from __future__ import annotations

import shutil
import sys
from types import TracebackType

import click
import msgspec

from holdfast.cli.errors import NOT_FOUND, CliError
from holdfast.cli.hints import program
from holdfast.cli.render.cards import EXAMPLE, STATUSES, WARNING, card_age, card_node, card_reason, fetch_cards
from holdfast.cli.screen import STATE_COLORS, UNLIMITED, dim, one_line, pad, plural, shorten, width, wrap, wrap_at_most
from holdfast.client.client import Client
from holdfast.client.http import Json
from holdfast.client.lenient import convert
from holdfast.schemas.cards import BoardView, CardView

WIDE = 100
"""Terminals that are narrower show a list."""
NARROWEST, WIDEST = 22, 44
GAP = "  "
DOT = " · "
SHOWN = {"done": 8}
MOST = 30
TITLE_LINES, REASON_LINES = 2, 3
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
ALTERNATE_SCREEN, MAIN_SCREEN, HIDE_CURSOR, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25l", "\x1b[?25h"


def fetch_board(client: Client, name: str | None) -> Json:
    """A board with its cards by column, and the other boards. Without a name `default`, else the oldest."""
    boards: list[Json] = client.get("/v1/boards", archived=True)["boards"]
    there = [board for board in boards if not board["archived"]]
    wanted = [board for board in boards if board["id"] == name] if name else []
    chosen = next(iter(wanted or [board for board in there if board["id"] == "default"] or there), None)
    if name and not wanted and (name != "default" or boards):
        raise CliError(
            f"There is no board {name!r}.", hint=f"`holdfast board create {name}` creates it.", code=NOT_FOUND
        )
    found = fetch_cards(client, board=chosen["id"]) if chosen is not None else {"cards": [], "why": {}}
    cards, whys = found["cards"], found["why"]
    columns = [_column(status, [card for card in cards if card["status"] == status]) for status in STATUSES]
    shown = [card for column in columns for card in column["cards"][: _most(column["status"])]]
    for card in shown:
        card["why"] = whys.get(card["id"], "")
    return {
        "board": chosen and chosen | {"cards": len(cards)},  # one more may have come since the boards were read
        "columns": columns,
        "others": [board for board in there if chosen is None or board["id"] != chosen["id"]],
    }


def _column(status: str, cards: list[Json]) -> Json:
    """Most urgent first; what is done, latest first."""
    if status == "done":
        cards = sorted(cards, key=lambda card: -int(card["moved_at"]))
    return {"status": status, "count": len(cards), "cards": [card | {"why": ""} for card in cards]}


def _most(status: str) -> int:
    return SHOWN.get(status, MOST)


class ShownCard(CardView, frozen=True, kw_only=True):
    """A card with why it is in its column, if it is among the first there."""

    why: str


class BoardColumn(msgspec.Struct, frozen=True):
    """A column, with all of its cards."""

    status: str
    count: int
    cards: list[ShownCard]


class BoardColumns(msgspec.Struct, frozen=True):
    """What `fetch_board` returns."""

    board: BoardView | None
    columns: list[BoardColumn]
    others: list[BoardView]


def render_board(found: Json, columns: int) -> list[str]:
    """The lines for a terminal of that width."""
    shown = convert(found, BoardColumns)
    board = shown.board
    used = [column for column in shown.columns if column.count]
    lines = [*_heading(board, columns), *(_counts(used, columns) if used else ()), ""]
    if not used:
        name = "" if board is None or board.id == "default" else board.id
        lines += [
            "There are no cards here yet. Try:",
            f"  {program()} {EXAMPLE}{f' --board {name}' if name else ''}",
            f"and then: {program()} board watch {name}".rstrip(),
        ]
    elif WIDE <= columns < UNLIMITED:
        lines += _side_by_side(used, columns)
    else:
        lines += _stacked(used, columns)
    while lines[-1] == "":
        lines.pop()
    others = [f"{one.id} ({plural(one.cards, 'card')})" for one in shown.others]
    if others:
        lines += ["", dim(shorten(f"other boards: {', '.join(others)}", columns))]
    return lines


def _heading(board: BoardView | None, room: int) -> list[str]:
    """Its name and title; if it is paused, a line says so."""
    if board is None:
        return [click.style("default", bold=True)]
    title = f" “{one_line(board.title)}”" if board.title not in ("Board", board.id) else ""
    archived = f"{DOT}archived" if board.archived else ""
    rest = shorten(f"{title}{DOT}{plural(board.cards, 'card')}{archived}", room - len(board.id))
    lines = [click.style(board.id, bold=True) + rest]
    if board.paused_by:
        said = (
            f"paused by {one_line(board.paused_by)}: no cards are started (resume: {program()} board resume {board.id})"
        )
        lines += [click.style(line, fg="yellow") for line in wrap(said, room)]
    return lines


def _counts(columns: list[BoardColumn], room: int) -> list[str]:
    """Every column that has cards with their number, in as few lines as fit."""
    lines, taken = [""], 0
    for column in columns:
        text = f"{column.status} {column.count}"
        if taken and taken + len(DOT) + len(text) > room:
            lines, taken = [*lines, ""], 0
        lines[-1] += (DOT if taken else "") + _colored(column.status, text)
        taken += (len(DOT) if taken else 0) + len(text)
    return lines


def _colored(status: str, text: str) -> str:
    color = STATE_COLORS.get(status)
    return click.style(text, fg=color) if color is not None else text


# --- below each other -----------------------------------------------------------------------------


def _stacked(used: list[BoardColumn], columns: int) -> list[str]:
    lines: list[str] = []
    for column in used:
        lines.append(_colored(column.status, f"{column.status.upper()} {column.count}"))
        for card in column.cards[: _most(column.status)]:
            lines += _row(card, columns)
        lines += [*_rest(column, columns), ""]
    return lines


def _row(card: ShownCard, columns: int) -> list[str]:
    """A line for the card, and below it why it is there."""
    mark = click.style(f"{WARNING} ", fg="yellow") if card.warning else ""
    head = f"  {card.label}  "
    profile = shorten(one_line(card.profile), max(4, columns // 5))
    node = shorten(card_node(card), max(4, columns // 5))
    tail = "  ".join(filter(None, (profile, node, card_age(card))))
    room = columns - width(head) - 2 * bool(mark) - len(GAP) - width(tail)
    title = one_line(card.title)
    if columns < UNLIMITED:
        title = pad(shorten(title, room), room)
    lines = [f"{_colored(card.status, head)}{mark}{title}{GAP}{dim(tail)}"]
    for text in _below(card):
        lines += [" " * len(head) + dim(line) for line in wrap_at_most(text, columns - len(head), REASON_LINES)]
    return lines


def _below(card: ShownCard) -> list[str]:
    new_session = f"{WARNING} new session: {one_line(card.warning)}" if card.warning else ""
    return [text for text in (card_reason(card, card.why), new_session) if text]


def _rest(column: BoardColumn, columns: int) -> list[str]:
    more = column.count - _most(column.status)
    if more <= 0:
        return []
    said = f"… {more} more: {program()} card list --status {column.status}"
    return [dim(said if columns == UNLIMITED else pad(shorten(said, columns), columns))]


# --- side by side ---------------------------------------------------------------------------------


def _side_by_side(used: list[BoardColumn], columns: int) -> list[str]:
    """In bands of as many columns as are wide enough to be read."""
    most = max(1, (columns + len(GAP)) // (NARROWEST + len(GAP)))
    bands = -(-len(used) // most)
    each = -(-len(used) // bands)
    lines: list[str] = []
    for start in range(0, len(used), each):
        band = used[start : start + each]
        room = min(WIDEST, (columns - len(GAP) * (each - 1)) // each)
        drawn = [_drawn(column, room) for column in band]
        height = max(map(len, drawn))
        for line in range(height):
            cells = [cell[line] if line < len(cell) else " " * room for cell in drawn]
            lines.append(GAP.join(cells).rstrip())
        lines.append("")
    return lines


def _drawn(column: BoardColumn, room: int) -> list[str]:
    """One column; every line is filled up to its width, so that the next column is aligned."""
    status = column.status
    lines = [_colored(status, pad(f"{status.upper()} {column.count}", room)), dim("─" * room)]
    for card in column.cards[: _most(status)]:
        lines += [*_box(card, room), " " * room]
    return [*lines, *_rest(column, room)]


def _box(card: ShownCard, room: int) -> list[str]:
    mark = f" {WARNING}" if card.warning else ""
    left, right = f"{card.label}{mark}", card_age(card)
    gap = " " * (room - width(left) - width(right))
    lines = [f"{_colored(card.status, left)}{gap}{dim(right)}"]
    lines += [pad(line, room) for line in wrap_at_most(one_line(card.title), room, TITLE_LINES)]
    if card.profile:
        lines.append(dim(pad(shorten(one_line(card.profile), room), room)))
    for text in _below(card):
        lines += [dim(pad(line, room)) for line in wrap_at_most(text, room, REASON_LINES)]
    return lines


class LiveBoard:
    """A context manager that shows a board on the alternate screen of a terminal, and updates it in place."""

    def __enter__(self) -> LiveBoard:
        self._write(ALTERNATE_SCREEN + HIDE_CURSOR)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write(SHOW_CURSOR + MAIN_SCREEN)

    def update(self, found: Json, footer: str, *, color: bool) -> None:
        """Write over what was there, line by line, so that it does not flicker."""
        columns, rows = shutil.get_terminal_size()
        lines = render_board(found, columns)
        room = max(1, rows - 2)
        if len(lines) > room:
            footer = f"{len(lines) - room} more lines below; {footer}"
        shown = [*lines[:room], "", dim(shorten(footer, columns))]
        if not color:
            shown = [click.unstyle(line) for line in shown]
        self._write(HOME + "\n".join(line + CLEAR_LINE for line in shown) + CLEAR_BELOW)

    def _write(self, text: str) -> None:
        sys.stdout.write(text)  # click would take these for colours
        sys.stdout.flush()
