"""`holdfast card assign`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.told import tell
from holdfast.cli.values import CARD, TEXT


@click.command("assign")
@click.argument("card", type=CARD)
@click.argument("profile", type=TEXT)
@shared_options
@pass_cli
def command(cli: Cli, card: str, profile: str) -> None:
    """Let PROFILE work on CARD from its next run on."""
    tell(cli, card, "", {"profile": profile}, done=f"{profile} works on it", method="PATCH")
