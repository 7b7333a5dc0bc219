"""`holdfast card runs`: the attempts at a card."""

from __future__ import annotations

import click

from holdfast.cli.cards import runs_table
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import clean
from holdfast.cli.values import CARD
from holdfast.client.http import quote


@click.command("runs")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """List the runs of CARD: how each ended, whether it resumed, its session, tokens, cost and duration."""
    if cli.json:
        body = cli.client.get(f"/v1/cards/{quote(card)}")
        cli.print_json({"card": body["card"]["id"], "runs": body["runs"]})
        return
    found = cli.client.cards.get(card)
    click.echo(runs_table(found) if found.runs else f"No run yet. {clean(found.why)}".rstrip())
