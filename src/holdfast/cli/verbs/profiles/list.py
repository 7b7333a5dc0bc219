"""`holdfast profiles list`."""

from __future__ import annotations

import click

from holdfast.cli.agents import profiles
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import Column, clean, table

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
    rows = [[p["name"], p["model"], p["origin"], "default" if p["default"] else ""] for p in found["profiles"]]
    click.echo(table(COLUMNS, rows))
    if found["problem"]:
        click.echo(
            f"config.toml has an error, the last good settings are in force: {clean(found['problem'])}", err=True
        )
