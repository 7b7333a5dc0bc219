"""`holdfast card retry`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.told import tell
from holdfast.cli.values import CARD, TEXT
from holdfast.client.http import Json


@click.command("retry")
@click.argument("card", type=CARD)
@click.option("--message", "-m", "text", type=TEXT, metavar="TEXT", help="What its worker is told; `-` reads it.")
@click.option("--fresh", is_flag=True, help="With a fresh session and a written hand-over, instead of resuming.")
@shared_options
@pass_cli
def command(cli: Cli, card: str, text: str | None, fresh: bool) -> None:
    """Let CARD be tried once more: blocked, done, in review, cooling down or archived. It resumes like `unblock`."""
    body: Json = {"fresh": fresh} | ({"text": text} if text is not None else {})
    how = "is tried once more with a fresh session" if fresh else "is tried once more"
    tell(cli, card, "/retry", body, done=f"{how}; what it does now: {program()} card why {card}")
