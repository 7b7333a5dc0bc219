"""`holdfast board`: the cards that agents work on, by column."""

from __future__ import annotations

import re
import shlex
import sys
import time
from contextlib import nullcontext

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.groups import NounGroup
from holdfast.cli.hints import program
from holdfast.cli.render.board import LiveBoard, fetch_board, render_board
from holdfast.cli.render.cards import EXAMPLE
from holdfast.cli.screen import Column, ago, clock, table, terminal_width
from holdfast.cli.values import BOARD, patience_option
from holdfast.client.http import Json
from holdfast.config import environment
from holdfast.schemas.cards import BoardAccepted, BoardList, BoardView

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
BOARDS = (
    Column("BOARD"),
    Column("CARDS", right=True),
    Column("CREATED"),
    Column("STATE"),
    Column("TITLE", flexible=True),
)
REDRAW_SECONDS = 10.0
"""The ages of cards change by themselves."""
SHORTEST_SECONDS = 0.25


@click.group(cls=NounGroup, default="show")
def board() -> None:
    """Show, watch, pause and resume a board. Without a verb: show. `holdfast card add` adds a card."""


@board.verb("Show")
@click.argument("name", type=BOARD, metavar="[BOARD]", required=False)
def show(cli: Cli, name: str | None) -> None:
    """Show the columns of BOARD with their cards. Also for how long and why each card is in its column.

    By default the board `default`, or the oldest one.
    """
    found = fetch_board(cli.client, name)
    if cli.json:
        cli.print_json(found)
    else:
        cli.echo("\n".join(render_board(found, terminal_width())))


@board.verb("Show")
@click.argument("name", type=BOARD, metavar="[BOARD]", required=False)
@patience_option
def watch(cli: Cli, name: str | None, patience: float) -> None:
    """Show the columns of BOARD and update them after every change. Ctrl-C leaves.

    In a pipe the board is printed again after every change; with --json as one object per line.
    """
    is_screen = sys.stdout.isatty() and not cli.json and environment("TERM") not in (None, "dumb")
    try:
        with LiveBoard() if is_screen else nullcontext() as screen:
            _watch(cli, name, screen, patience=patience)
    except KeyboardInterrupt:
        if not is_screen:
            cli.note("")


def _watch(cli: Cli, name: str | None, screen: LiveBoard | None, *, patience: float) -> None:
    from holdfast.client.events import BoardWatcher
    from holdfast.client.reconnect import UNREACHABLE

    found, printed = fetch_board(cli.client, name), None
    with BoardWatcher(cli.client, patience=patience) as changes:
        while True:
            is_away = False
            try:
                found = fetch_board(cli.client, name)
            except UNREACHABLE:
                is_away = True
            if screen is not None:
                time_of_day = clock(int(time.time() * 1000))
                footer = "the gateway is away; waiting for it" if is_away else f"{time_of_day} · Ctrl-C: leave"
                screen.update(found, footer, color=not cli.plain)
            elif found != printed and not is_away:
                _print(cli, found)
                printed = found
            changes.wait(REDRAW_SECONDS)
            time.sleep(SHORTEST_SECONDS)


def _print(cli: Cli, found: Json) -> None:
    if cli.json:
        cli.print_json(found, one_line=True)
    else:
        cli.echo("\n".join([*render_board(found, terminal_width()), ""]))


@board.verb("Show", "list")
@click.option("--archived", is_flag=True, help="Include archived boards.")
def list_boards(cli: Cli, archived: bool) -> None:
    """List the boards, oldest first."""

    def text(found: BoardList) -> str:
        if found.boards:
            return table(BOARDS, [_cells(board) for board in found.boards])
        more = "" if archived else f"\nArchived boards: {program()} board list --archived"
        return f"No boards; the first card creates one. Try: {program()} {EXAMPLE}{more}"

    cli.show(cli.client.get("/v1/boards", archived=archived), BoardList, text)


def _cells(board: BoardView) -> list[str]:
    state = "archived" if board.archived else f"paused by {board.paused_by}" if board.paused_by else "open"
    return [board.id, str(board.cards), ago(board.created_at), state, board.title]


@board.verb("Change")
@click.argument("name")
@click.option("--title", metavar="TEXT", help="Its title; by default its name.")
def create(cli: Cli, name: str, title: str | None) -> None:
    """Create a board. NAME is its ID: lower-case letters, digits, `-` and `_`."""
    if not NAME.match(name):
        known = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")[:64] or "web"
        raise CliError(
            f"{name!r} cannot be the name of a board: use at most 64 lower-case letters, digits, `-` and `_`.",
            hint=f"holdfast board create {known} --title {shlex.quote(name)}",
            code=USAGE,
        )
    shown_by = f"{program()} board list"
    accepted = cli.send_command(BoardAccepted, "/v1/boards", shown_by=shown_by, board=name, title=title)
    done = f"created; add a card to it: {program()} card add TITLE --board {name}"
    cli.accepted(accepted, done)


@board.verb("Change")
@click.argument("name", type=BOARD, metavar="[BOARD]", default="default")
def pause(cli: Cli, name: str) -> None:
    """Start no cards of BOARD until it is resumed. Running cards continue."""
    cli.accepted(cli.client.boards.pause(name), "paused; no cards are started, running cards continue")


@board.verb("Change")
@click.argument("name", type=BOARD, metavar="[BOARD]", default="default")
def resume(cli: Cli, name: str) -> None:
    """Start the cards of BOARD again. Also restores an archived board."""
    cli.accepted(cli.client.boards.resume(name), "resumed; cards are started again")


@board.verb("Change")
@click.argument("name", type=BOARD, metavar="BOARD")
def archive(cli: Cli, name: str) -> None:
    """Hide BOARD from the list. Its cards stay, but are not started. Refused while a card is running.

    `holdfast board resume` restores it.
    """
    done = f"archived; its cards stay (undo: {program()} board resume {name})"
    cli.accepted(cli.client.boards.archive(name), done)
