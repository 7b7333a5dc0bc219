"""`holdfast board list`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, ago, table
from holdfast.schemas.cards import BoardView

COLUMNS = (
    Column("BOARD"),
    Column("CARDS", right=True),
    Column("CREATED"),
    Column("STATE"),
    Column("TITLE", flexible=True),
)


@click.command("list")
@click.option("--archived", is_flag=True, help="Also those that were archived.")
@shared_options
@pass_cli
def command(cli: Cli, archived: bool) -> None:
    """List the boards, oldest first."""
    if cli.json:
        cli.print_json(cli.client.get("/v1/boards", archived=archived))
    elif boards := cli.client.boards.list(archived=archived).boards:
        click.echo(table(COLUMNS, [_cells(board) for board in boards]))
    else:
        click.echo(f'No board yet; the first card makes one. Try: {program()} card add "Say hello" --profile demo')


def _cells(board: BoardView) -> list[str]:
    state = "archived" if board.archived else f"paused by {board.paused_by}" if board.paused_by else "open"
    return [board.id, str(board.cards), ago(board.created_at), state, board.title]
