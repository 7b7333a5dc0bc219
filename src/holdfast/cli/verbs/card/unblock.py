"""`holdfast card unblock`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.values import CARD, TEXT


@click.command("unblock")
@click.argument("card", type=CARD)
@click.option("--message", "-m", "text", type=TEXT, metavar="TEXT", help="What its worker is told; `-` reads it.")
@click.option("--fresh", is_flag=True, help="With a fresh session and a written hand-over, instead of resuming.")
@shared_options
@pass_cli
def command(cli: Cli, card: str, text: str | None, fresh: bool) -> None:
    """Let CARD go on, and tell its worker your words.

    The worker is resumed in the session of its last run and your words are its next turn; with --fresh, or where the
    card, its profile or [board] say `fresh`, it begins a new session with them.
    """
    how = "may go on with a fresh session" if fresh else "may go on"
    done = f"{how}; what it does now: {program()} card why {card}"
    cli.accepted(cli.client.cards.unblock(card, text, fresh=fresh), done)
