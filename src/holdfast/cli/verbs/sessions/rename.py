"""`holdfast sessions rename`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import SESSION, TEXT


@click.command("rename")
@click.argument("session", type=SESSION)
@click.argument("title", type=TEXT)
@shared_options
@pass_cli
def command(cli: Cli, session: str, title: str) -> None:
    """Give SESSION another TITLE."""
    cli.accepted(cli.client.sessions.rename(session, title), f"renamed to “{title}”")
