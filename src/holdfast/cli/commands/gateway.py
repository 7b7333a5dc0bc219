"""`holdfast devices`: the browsers that are signed in to the gateway."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli
from holdfast.cli.groups import NounGroup
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, ago, clean, table
from holdfast.cli.values import TEXT
from holdfast.client.http import quote
from holdfast.schemas.devices import DeviceList, DeviceView

DEVICES = (Column("ID"), Column("NAME", flexible=True), Column("SIGNED IN"), Column("SEEN"), Column("OPEN", right=True))


@click.group(cls=NounGroup, default="list")
def devices() -> None:
    """List the browsers that are signed in, and sign them out. Without a verb: list."""


@devices.verb("Look", "list")
def list_devices(cli: Cli) -> None:
    """List the browsers that are signed in, when they were here last, and how many streams they have open."""
    if cli.json:
        cli.print_json(cli.client.get("/v1/devices"))
    elif found := cli.client.read(DeviceList, "/v1/devices").devices:
        cli.echo(table(DEVICES, [_cells(device) for device in found]))
    else:
        cli.echo(f"No browser is signed in. Try: {program()} open")


@devices.verb("Change")
@click.argument("device", type=TEXT)
def revoke(cli: Cli, device: str) -> None:
    """Sign DEVICE out: its cookie is invalid at once, and its open connections are closed."""
    gone = cli.client.command("DELETE", f"/v1/devices/{quote(device)}")
    cli.result(f"{gone['device']}: “{clean(gone['name'])}” is signed out", **gone)


def _cells(device: DeviceView) -> list[str]:
    return [device.id, device.name, ago(device.created_at), ago(device.seen_at), str(device.connected)]
