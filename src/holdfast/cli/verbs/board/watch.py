"""`holdfast board watch`: the columns, drawn anew whenever something changes."""

from __future__ import annotations

import json
import shutil
import sys
import time

import click

from holdfast.cli.board import look, picture
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import clock, dim, shorten, terminal_width
from holdfast.cli.values import BOARD, patience_option
from holdfast.client.board_watcher import BoardWatcher
from holdfast.client.http import Json
from holdfast.client.reconnect import UNREACHABLE
from holdfast.config import environment, no_color

REDRAW_SECONDS = 10.0
"""The ages move on their own."""
SHORTEST_SECONDS = 0.25
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
OTHER_SCREEN, BACK, HIDE, SHOW = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25l", "\x1b[?25h"


@click.command("watch")
@click.argument("board", type=BOARD, required=False)
@patience_option
@shared_options
@pass_cli
def command(cli: Cli, board: str | None, patience: float) -> None:
    """Show the columns of BOARD and draw them anew whenever something changes; Ctrl-C leaves.

    In a pipe, and with --json one object a line, it is printed again after every change.
    """
    on_screen = sys.stdout.isatty() and not cli.json and environment("TERM") not in (None, "dumb")
    if on_screen:
        print(OTHER_SCREEN + HIDE, end="")
    try:
        _watch(cli, board, patience, on_screen=on_screen)
    except KeyboardInterrupt:
        if not on_screen:
            print(file=sys.stderr)
    finally:
        if on_screen:
            print(SHOW + BACK, end="", flush=True)


def _watch(cli: Cli, board: str | None, patience: float, *, on_screen: bool) -> None:
    found = look(cli.client, board)
    with BoardWatcher(cli.client, patience=patience) as changes:
        last: Json | None = None
        while True:
            away = False
            try:
                found = look(cli.client, board)
            except UNREACHABLE:
                away = True
            if on_screen:
                _draw(found, away=away)
            elif found != last and not away:
                _print(cli, found)
                last = found
            changes.wait(REDRAW_SECONDS)
            time.sleep(SHORTEST_SECONDS)


def _draw(found: Json, *, away: bool) -> None:
    """Over what was there, line by line, so that it does not flicker."""
    columns, rows = shutil.get_terminal_size()
    said = "the gateway is away; waiting for it" if away else f"{clock(int(time.time() * 1000))} · Ctrl-C leaves"
    lines = picture(found, columns)
    room = max(1, rows - 2)
    if len(lines) > room:
        said = f"{len(lines) - room} more lines below; {said}"
    shown = [*lines[:room], "", dim(shorten(said, columns))]
    if no_color():
        shown = [click.unstyle(line) for line in shown]
    print(HOME + "\n".join(line + CLEAR_LINE for line in shown) + CLEAR_BELOW, end="", flush=True)


def _print(cli: Cli, found: Json) -> None:
    if cli.json:
        print(json.dumps(found, ensure_ascii=False, sort_keys=True), flush=True)
    else:
        click.echo("\n".join(picture(found, terminal_width())) + "\n")
        sys.stdout.flush()
