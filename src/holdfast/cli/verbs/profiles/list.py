"""`holdfast profiles list`."""

from __future__ import annotations

import click

from holdfast.cli.agents import profiles
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import Column, clean, table
from holdfast.client.lenient import convert
from holdfast.schemas.gateway import ProfileList

COLUMNS = (Column("NAME"), Column("MODEL", flexible=True), Column("FROM"), Column(""))


@click.command("list")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """List the profiles, with where they come from."""
    found = profiles(cli)
    if cli.json:
        cli.print_json(found)
        return
    known = convert(found, ProfileList)
    rows = [[one.name, one.model, one.origin, "default" if one.default else ""] for one in known.profiles]
    click.echo(table(COLUMNS, rows))
    if known.problem:
        click.echo(f"config.toml has an error, the last good settings are in force: {clean(known.problem)}", err=True)
