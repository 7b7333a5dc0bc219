"""`holdfast card unlink`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD


@click.command("unlink")
@click.argument("card", type=CARD)
@click.argument("parent", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str, parent: str) -> None:
    """Do not let CARD wait for PARENT any more."""
    parent = cli.client.cards.get(parent).card.id
    cli.accepted(cli.client.cards.unlink(card, parent), f"does not wait for {parent} any more")
