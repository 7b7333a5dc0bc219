"""`holdfast card runs`: the attempts at a card."""

from __future__ import annotations

import click

from holdfast.cli.cards import find, runs_table
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import clean
from holdfast.cli.values import CARD


@click.command("runs")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """List the runs of CARD: how each ended, whether it resumed, its session, tokens, cost and duration."""
    found = find(cli.client, card)
    if cli.json:
        cli.print_json({"card": found["card"]["id"], "runs": found["runs"]})
    elif found["runs"]:
        click.echo(runs_table(found))
    else:
        click.echo(f"No run yet. {clean(found['why'])}".rstrip())
