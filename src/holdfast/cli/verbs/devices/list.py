"""`holdfast devices list`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, ago, table
from holdfast.schemas.devices import DeviceList, DeviceView

COLUMNS = (Column("ID"), Column("NAME", flexible=True), Column("SIGNED IN"), Column("SEEN"), Column("OPEN", right=True))


@click.command("list")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """List the browsers that are signed in, when they were here last, and how many streams they have open."""
    if cli.json:
        cli.print_json(cli.client.get("/v1/devices"))
    elif devices := cli.client.read(DeviceList, "/v1/devices").devices:
        click.echo(table(COLUMNS, [_cells(device) for device in devices]))
    else:
        click.echo(f"No browser is signed in. Try: {program()} open")


def _cells(device: DeviceView) -> list[str]:
    return [device.id, device.name, ago(device.created_at), ago(device.seen_at), str(device.connected)]
