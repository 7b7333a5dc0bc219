"""`holdfast board resume`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import BOARD


@click.command("resume")
@click.argument("board", type=BOARD, default="default")
@shared_options
@pass_cli
def command(cli: Cli, board: str) -> None:
    """Start the cards of BOARD again; one that was archived comes back into the list."""
    cli.accepted(cli.client.boards.resume(board), "cards are started again")
