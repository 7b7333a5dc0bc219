"""`holdfast card schedule`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import moment
from holdfast.cli.told import tell
from holdfast.cli.values import CARD, UNTIL


@click.command("schedule")
@click.argument("card", type=CARD)
@click.argument("time", type=UNTIL)
@shared_options
@pass_cli
def command(cli: Cli, card: str, time: int) -> None:
    """Do not start CARD before TIME: a span like 2h, or a date like "2026-11-30 18:00"."""
    tell(cli, card, "/move", {"status": "scheduled", "at": time}, done=f"becomes ready at {moment(time)}")
