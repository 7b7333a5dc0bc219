"""`holdfast card list`."""

from __future__ import annotations

import click

from holdfast.cli.cards import CARDS, STATUSES, card_cells, listed_rows
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import table
from holdfast.cli.values import BOARD
from holdfast.client.lenient import convert
from holdfast.schemas.cards import CardView


@click.command("list")
@click.option("--board", type=BOARD, metavar="NAME", help="Only of this board.")
@click.option("--status", type=click.Choice([*STATUSES, "archived"]), help="Only those in this column.")
@click.option("--profile", metavar="NAME", help="Only those that this agent works on.")
@click.option("--search", "text", metavar="TEXT", help="Only with this in the title.")
@click.option("--archived", is_flag=True, help="Also those that were archived.")
@shared_options
@pass_cli
def command(
    cli: Cli, board: str | None, status: str | None, profile: str | None, text: str | None, archived: bool
) -> None:
    """List the cards of all boards, most urgent first, each with why it stands where it stands."""
    cards, whys = listed_rows(cli.client, board=board, status=status, profile=profile, text=text, archived=archived)
    if cli.json:
        cli.print_json({"cards": cards})
    elif cards:
        click.echo(table(CARDS, card_cells(convert(cards, list[CardView]), whys)))
    elif any((board, status, profile, text, archived)):
        click.echo(f"No card fits. `{program()} card list` lists all of them.")
    else:
        click.echo(f'No card yet. Try: {program()} card add "Say hello" --body "say hello" --profile demo')
