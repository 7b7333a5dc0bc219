"""`holdfast card follow`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD, SESSION


@click.command("follow")
@click.argument("card", type=CARD)
@click.argument("session", type=SESSION)
@click.option("--off", is_flag=True, help="Stop following.")
@shared_options
@pass_cli
def command(cli: Cli, card: str, session: str, off: bool) -> None:
    """Notify SESSION of the blocks, failures and the end of CARD, once each; or stop that."""
    done = f"session {session} is {'no longer notified' if off else 'notified of its blocks, failures and end'}"
    cli.accepted(cli.client.cards.follow(card, session, following=not off), done)
