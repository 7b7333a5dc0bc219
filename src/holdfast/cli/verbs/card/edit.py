"""`holdfast card edit`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.values import CARD, TEXT
from holdfast.cli.verbs.card.options import card_options, given


@click.command("edit")
@click.argument("card", type=CARD)
@click.option("--title", type=TEXT, metavar="TEXT", help="Another title.")
@card_options
@shared_options
@pass_cli
def command(cli: Cli, /, card: str, **wanted: object) -> None:
    """Change what CARD says; what is not named stays. While it runs only priority and limits: comment on it instead."""
    body = given(wanted)
    if not body:
        raise CliError("There is nothing to change.", hint="`holdfast card edit --help` shows what can be.", code=USAGE)
    done = f"changed: {', '.join(name.removesuffix('_ms') for name in body)}"
    cli.accepted(cli.client.cards.edit(card, **body), done)
