"""`holdfast config path`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options


@click.command("path")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """Print where the settings are, or would be."""
    path = cli.home.config
    if cli.json:
        cli.print_json({"path": str(path), "exists": path.exists()})
    else:
        click.echo(str(path))
