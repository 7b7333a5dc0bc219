"""`holdfast card diff`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import clean
from holdfast.cli.values import CARD
from holdfast.client.http import quote


@click.command("diff")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """Show what is different in the workspace of CARD from where it began, as far as git knows."""
    if cli.json:
        cli.print_json(cli.client.get(f"/v1/cards/{quote(card)}/diff"))
    else:
        click.echo(clean(cli.client.cards.diff(card).diff) or "No changes (or not a git repository).")
