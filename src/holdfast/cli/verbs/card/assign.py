"""`holdfast card assign`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD, TEXT


@click.command("assign")
@click.argument("card", type=CARD)
@click.argument("profile", type=TEXT)
@shared_options
@pass_cli
def command(cli: Cli, card: str, profile: str) -> None:
    """Let PROFILE work on CARD from its next run on."""
    cli.accepted(cli.client.cards.edit(card, profile=profile), f"{profile} works on it")
