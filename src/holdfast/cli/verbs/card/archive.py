"""`holdfast card archive`."""

from __future__ import annotations

import click

from holdfast.cli.cards import find, workspace_outcome
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.told import command as give
from holdfast.cli.values import CARD


@click.command("archive")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """Take CARD off the board. Its workspace is removed only if nothing would be lost with it."""
    accepted = give(cli.client, card, "/archive", {})
    if cli.json:
        cli.print_json({key: accepted[key] for key in ("card", "version", "seq", "kept")})
        return
    click.echo(
        f"{accepted['card']}: archived; {workspace_outcome(find(cli.client, accepted['card']), accepted['kept'])}"
    )
