"""`holdfast board show`: the columns with their cards."""

from __future__ import annotations

import click

from holdfast.cli.board import look, picture
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import terminal_width
from holdfast.cli.values import BOARD


@click.command("show")
@click.argument("board", type=BOARD, required=False)
@shared_options
@pass_cli
def command(cli: Cli, board: str | None) -> None:
    """Show the columns of BOARD (by default the board `default`): each card, since when, and why it stands there."""
    found = look(cli.client, board)
    if cli.json:
        cli.print_json(found)
        return
    for line in picture(found, terminal_width()):
        click.echo(line)
