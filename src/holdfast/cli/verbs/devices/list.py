"""`holdfast devices list`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, ago, table

COLUMNS = (Column("ID"), Column("NAME", flexible=True), Column("SIGNED IN"), Column("SEEN"), Column("OPEN", right=True))


@click.command("list")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """List the browsers that are signed in, when they were here last, and how many streams they have open."""
    found = cli.client.get("/v1/devices")
    if cli.json:
        cli.print_json(found)
    elif found["devices"]:
        click.echo(table(COLUMNS, [_cells(device) for device in found["devices"]]))
    else:
        click.echo(f"No browser is signed in. Try: {program()} open")


def _cells(device: dict[str, object]) -> list[str]:
    times = [ago(int(str(device[name]))) for name in ("created_at", "seen_at")]
    return [str(device["id"]), str(device["name"]), *times, str(device["connected"])]
