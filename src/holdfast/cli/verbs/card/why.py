"""`holdfast card why`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.sentences import in_lines
from holdfast.cli.values import CARD
from holdfast.client.http import quote


@click.command("why")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """Say why CARD is where it is, what would move it, and how its last runs ended."""
    if cli.json:
        cli.print_json(cli.client.get(f"/v1/cards/{quote(card)}/why"))
        return
    for line in in_lines(cli.client.why(card=card).sentences):
        click.echo(line)
