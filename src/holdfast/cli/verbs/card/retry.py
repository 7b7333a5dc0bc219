"""`holdfast card retry`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.values import CARD, TEXT


@click.command("retry")
@click.argument("card", type=CARD)
@click.option("--message", "-m", "text", type=TEXT, metavar="TEXT", help="What its worker is told; `-` reads it.")
@click.option("--fresh", is_flag=True, help="With a fresh session and a written hand-over, instead of resuming.")
@shared_options
@pass_cli
def command(cli: Cli, card: str, text: str | None, fresh: bool) -> None:
    """Let CARD be tried once more: blocked, done, in review, cooling down or archived. It resumes like `unblock`."""
    how = "is tried once more with a fresh session" if fresh else "is tried once more"
    done = f"{how}; what it does now: {program()} card why {card}"
    cli.accepted(cli.client.cards.retry(card, text, fresh=fresh), done)
