"""`holdfast board list`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, ago, table

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
    found = cli.client.get("/v1/boards", archived=str(archived).lower())
    if cli.json:
        cli.print_json(found)
    elif found["boards"]:
        click.echo(table(COLUMNS, [_cells(board) for board in found["boards"]]))
    else:
        click.echo(f'No board yet; the first card makes one. Try: {program()} card add "Say hello" --profile demo')


def _cells(board: dict[str, object]) -> list[str]:
    state = "archived" if board["archived"] else f"paused by {board['paused_by']}" if board["paused_by"] else "open"
    return [str(board["id"]), str(board["cards"]), ago(int(str(board["created_at"]))), state, str(board["title"])]
