"""`holdfast card schedule`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import moment
from holdfast.cli.values import CARD, UNTIL


@click.command("schedule")
@click.argument("card", type=CARD)
@click.argument("time", type=UNTIL)
@shared_options
@pass_cli
def command(cli: Cli, card: str, time: int) -> None:
    """Do not start CARD before TIME: a span like 2h, or a date like "2026-11-30 18:00"."""
    cli.accepted(cli.client.cards.move(card, "scheduled", at=time), f"becomes ready at {moment(time)}")
