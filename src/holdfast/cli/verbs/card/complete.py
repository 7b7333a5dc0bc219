"""`holdfast card complete`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD, TEXT


@click.command("complete")
@click.argument("card", type=CARD)
@click.option("--message", "-m", "summary", type=TEXT, metavar="TEXT", help="What was done.")
@shared_options
@pass_cli
def command(cli: Cli, card: str, summary: str | None) -> None:
    """Say that CARD is done. One that runs is stopped; what waits for it may begin."""
    cli.accepted(cli.client.cards.complete(card, summary=summary or ""), "done")
