"""`holdfast card promote`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD

if TYPE_CHECKING:
    from holdfast.domain.events.card import CardStatus


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
def command(cli: Cli, card: str, status: CardStatus) -> None:
    """Put CARD into `ready`, so that it is started as soon as nothing blocks it; or into another column."""
    cli.accepted(cli.client.cards.move(card, status), f"is in {status} now")
