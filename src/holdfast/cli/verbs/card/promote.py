"""`holdfast card promote`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.told import tell
from holdfast.cli.values import CARD


@click.command("promote")
@click.argument("card", type=CARD)
@click.option(
    "--to",
    "status",
    type=click.Choice(["triage", "todo", "ready", "review"]),
    default="ready",
    show_default=True,
    help="Another column.",
)
@shared_options
@pass_cli
def command(cli: Cli, card: str, status: str) -> None:
    """Put CARD into `ready`, so that it is started as soon as nothing blocks it; or into another column."""
    tell(cli, card, "/move", {"status": status}, done=f"is in {status} now")
