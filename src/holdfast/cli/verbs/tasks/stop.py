"""`holdfast tasks stop`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.ending import end
from holdfast.cli.values import TASK


@click.command("stop")
@click.argument("task", type=TASK)
@shared_options
@pass_cli
def command(cli: Cli, task: str) -> None:
    """Ask TASK to end; what has not ended after 5 s is ended by force. Says how it ended."""
    end(cli, task, force=False)
