"""`holdfast board archive`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.values import BOARD


@click.command("archive")
@click.argument("board", type=BOARD)
@shared_options
@pass_cli
def command(cli: Cli, board: str) -> None:
    """Take BOARD out of the list; nothing on it may run. Its cards stay, and are not started any more;
    `resume` brings it back.
    """
    done = f"archived; its cards stay ({program()} board resume {board} brings it back)"
    cli.accepted(cli.client.boards.archive(board), done)
