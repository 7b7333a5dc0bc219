"""`holdfast sessions restore`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import SESSION


@click.command("restore")
@click.argument("session", type=SESSION)
@shared_options
@pass_cli
def command(cli: Cli, session: str) -> None:
    """Bring an archived SESSION back to the list."""
    cli.accepted(cli.client.sessions.restore(session), "back in the list")
