"""`holdfast tasks kill`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.ending import end
from holdfast.cli.values import TASK


@click.command("kill")
@click.argument("task", type=TASK)
@shared_options
@pass_cli
def command(cli: Cli, task: str) -> None:
    """End TASK at once, with everything that it started. Says how it ended, and who outlived it if somebody did."""
    end(cli, task, force=True)
