"""`holdfast devices revoke`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import TEXT
from holdfast.client.http import quote


@click.command("revoke")
@click.argument("device", type=TEXT)
@shared_options
@pass_cli
def command(cli: Cli, device: str) -> None:
    """Sign DEVICE out: its cookie is dead at once, and what it has open is cut."""
    gone = cli.client.command("DELETE", f"/v1/devices/{quote(device)}")
    if cli.json:
        cli.print_json(gone)
    else:
        print(f"{gone['device']}: “{gone['name']}” is signed out")
