"""`holdfast sessions archive`."""

from __future__ import annotations

import click

from holdfast.cli.commands import tell
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import SESSION


@click.command("archive")
@click.argument("session", type=SESSION)
@shared_options
@pass_cli
def command(cli: Cli, session: str) -> None:
    """Take SESSION out of the list; nothing is deleted, and a message brings it back."""
    tell(cli, "POST", session, "/archive", {}, done="archived; `holdfast sessions restore` brings it back")
