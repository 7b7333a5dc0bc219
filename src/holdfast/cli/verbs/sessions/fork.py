"""`holdfast sessions fork`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.values import SESSION, TEXT


@click.command("fork")
@click.argument("session", type=SESSION)
@click.option("--at", "version", type=click.IntRange(1), help="Only up to this version; by default all of it.")
@click.option("--title", type=TEXT, help="Of the new session.")
@shared_options
@pass_cli
def command(cli: Cli, session: str, version: int | None, title: str | None) -> None:
    """Begin a new session that knows everything in SESSION; both go their own ways."""
    accepted = cli.client.sessions.fork(session, version=version, title=title)
    if cli.json:
        cli.accepted(accepted, "")
    else:
        click.echo(accepted.session)
        click.echo(f"go on with: {program()} chat {accepted.session}", err=True)
