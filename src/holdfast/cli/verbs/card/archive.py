"""`holdfast card archive`."""

from __future__ import annotations

import click

from holdfast.cli.cards import find, workspace_outcome
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD


@click.command("archive")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """Take CARD off the board. Its workspace is removed only if nothing would be lost with it."""
    accepted = cli.client.cards.archive(card)
    if cli.json:
        keys = ("card", "version", "seq", "kept")
        cli.print_json({key: getattr(accepted, key) for key in keys})
        return
    outcome = workspace_outcome(find(cli.client, accepted.card), accepted.kept)
    click.echo(f"{accepted.card}: archived; {outcome}")
