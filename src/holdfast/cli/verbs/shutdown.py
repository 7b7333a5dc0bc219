"""`holdfast shutdown`: end the gateway."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options


@click.command("shutdown")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """End the gateway and wait until it is gone. Open turns are suspended and go on at the next start."""
    from holdfast.cli.start import stop

    pid = stop(cli.gateway).pid
    if cli.json:
        cli.print_json({"pid": pid})
    else:
        click.echo(f"the gateway (pid {pid}) has ended; open turns go on at the next start")
