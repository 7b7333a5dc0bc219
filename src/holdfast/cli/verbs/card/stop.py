"""`holdfast card stop`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.values import CARD


@click.command("stop")
@click.argument("card", type=CARD)
@click.option("--reason", metavar="TEXT", help="Why.")
@shared_options
@pass_cli
def command(cli: Cli, card: str, reason: str | None) -> None:
    """End the run of CARD; it is blocked until somebody lets it go on. What was done stays."""
    done = f"stopped and blocked; {program()} card unblock {card} lets it go on"
    cli.accepted(cli.client.cards.stop(card, reason=reason), done)
