"""`holdfast tasks show`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import facts
from holdfast.cli.tasks import all_facts
from holdfast.cli.values import TASK
from holdfast.client.http import quote


@click.command("show")
@click.argument("task", type=TASK)
@shared_options
@pass_cli
def command(cli: Cli, task: str) -> None:
    """Show all that is known of TASK: who started it, what it is, how it stands or ended, and how that is known."""
    if cli.json:
        cli.print_json(cli.client.get(f"/v1/tasks/{quote(task)}"))
    else:
        click.echo(facts(all_facts(cli.client.tasks.get(task))))
