"""`holdfast card release`."""

from __future__ import annotations

import click

from holdfast.cli.cards import find, workspace_outcome
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import CARD


@click.command("release")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """Remove the workspace that archived CARD kept, if nothing would be lost now.

    For a worktree: after its branch was merged or pushed. The branch itself stays. Exit code 1 if it is kept.
    """
    released = cli.client.cards.release(card)
    if cli.json:
        cli.print_json({"card": released.card, "kept": released.kept})
    else:
        outcome = workspace_outcome(find(cli.client, released.card), released.kept)
        click.echo(f"{released.card}: {outcome}")
    if released.kept:
        click.get_current_context().exit(1)
