"""`holdfast restart`: end the gateway and start it again."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options


@click.command("restart")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """End the gateway and start it again in the background, at the same port. Open turns go on."""
    from holdfast.cli.start import start, stop

    old = stop(cli.gateway)
    new = start(cli.gateway, port=old.port)
    if cli.json:
        cli.print_json({"pid": new.pid, "stopped": old.pid, "url": new.url})
    else:
        click.echo(f"the gateway (pid {old.pid}) has ended; pid {new.pid} runs at {new.url}")
