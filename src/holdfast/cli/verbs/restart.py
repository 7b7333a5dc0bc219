"""`holdfast restart`: let the gateway start again."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options


@click.command("restart")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """Let the gateway start again, at the same port; start one where none runs. Open turns go on.

    It stays the same process, whoever asks for it. With a wrong config.toml the running one goes on as it is.
    """
    from holdfast.client.launch import restart

    done = restart(cli.client)
    old, new = done.old, done.new
    if cli.json:
        cli.print_json({"pid": new.pid, "stopped": old.pid if old is not None else None, "url": new.url})
    elif old is not None:
        click.echo(f"the gateway (pid {new.pid}) has restarted and runs at {new.url}")
    else:
        click.echo(f"no gateway was running; one was started and runs at {new.url}")
