"""`holdfast stop`: end the turn of a session."""

from __future__ import annotations

import click

from holdfast.cli.commands import tell
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import SESSION


@click.command("stop")
@click.argument("session", type=SESSION)
@shared_options
@pass_cli
def command(cli: Cli, session: str) -> None:
    """End the turn that SESSION is in; queued messages stay."""
    tell(cli, "POST", session, "/stop", {}, done="the turn is being stopped")
