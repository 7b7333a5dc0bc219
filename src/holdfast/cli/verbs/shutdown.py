"""`holdfast shutdown`: end the gateway."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import one_line, shorten

SHOWN = 20


@click.command("shutdown")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """End the gateway and wait until it is gone. Open turns are suspended and go on at the next start.

    Commands that it started go on running; they are listed.
    """
    from holdfast.client.launch import stop

    running = [] if cli.json else cli.client.get("/v1/tasks", state="running", limit=500)["tasks"]
    pid = stop(cli.client).pid
    if cli.json:
        cli.print_json({"pid": pid})
        return
    click.echo(f"the gateway (pid {pid}) has ended; open turns go on at the next start")
    commands = [task for task in running if task["kind"] == "process" and task["pid"] is not None]
    if commands:
        goes = "command goes" if len(commands) == 1 else "commands go"
        click.echo(f"{len(commands)} {goes} on running:")
    for task in commands[:SHOWN]:
        click.echo(f"  {task['id']}  pid {task['pid']}  {shorten(one_line(task['title']), 60)}")
    if len(commands) > SHOWN:
        click.echo(f"  … and {len(commands) - SHOWN} more")
