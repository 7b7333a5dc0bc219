"""`holdfast board pause`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import BOARD


@click.command("pause")
@click.argument("board", type=BOARD, default="default")
@shared_options
@pass_cli
def command(cli: Cli, board: str) -> None:
    """Start nothing on BOARD until somebody resumes it; what runs goes on."""
    cli.accepted(cli.client.boards.pause(board), "paused: nothing is started; what runs goes on")
