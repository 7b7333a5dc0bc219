"""`holdfast tasks show`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import facts
from holdfast.cli.tasks import all_facts, find
from holdfast.cli.values import TASK


@click.command("show")
@click.argument("task", type=TASK)
@shared_options
@pass_cli
def command(cli: Cli, task: str) -> None:
    """Show all that is known of TASK: who started it, what it is, how it stands or ended, and how that is known."""
    found = find(cli.client, task)
    if cli.json:
        cli.print_json(found)
    else:
        click.echo(facts(all_facts(found)))
