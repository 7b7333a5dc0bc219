"""`holdfast tasks pin`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.ending import pin
from holdfast.cli.values import TASK


@click.command("pin")
@click.argument("task", type=TASK)
@shared_options
@pass_cli
def command(cli: Cli, task: str) -> None:
    """Keep TASK whatever is pruned."""
    pin(cli, task, pinned=True)
