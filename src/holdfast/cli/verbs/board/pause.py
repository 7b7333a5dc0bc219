"""`holdfast board pause`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.told import about_board
from holdfast.cli.values import BOARD
from holdfast.client.http import quote


@click.command("pause")
@click.argument("board", type=BOARD, default="default")
@shared_options
@pass_cli
def command(cli: Cli, board: str) -> None:
    """Start nothing on BOARD until somebody resumes it; what runs goes on."""
    about_board(
        cli,
        cli.client.command("POST", f"/v1/boards/{quote(board)}/pause", {}),
        "paused: nothing is started; what runs goes on",
    )
