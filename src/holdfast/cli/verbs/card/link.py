"""`holdfast card link`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD


@click.command("link")
@click.argument("card", type=CARD)
@click.argument("parent", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str, parent: str) -> None:
    """Let CARD wait until PARENT is done."""
    cli.accepted(cli.client.cards.link(card, parent), f"waits until {parent} is done")
