"""`holdfast card comment`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD, TEXT


@click.command("comment")
@click.argument("card", type=CARD)
@click.argument("text", type=TEXT)
@shared_options
@pass_cli
def command(cli: Cli, card: str, text: str) -> None:
    """Say TEXT about CARD; `-` reads it from standard input.

    A worker that runs hears it at its next step, else the next one hears it first of all.
    """
    cli.accepted(cli.client.cards.comment(card, text), "commented; its worker hears it")
