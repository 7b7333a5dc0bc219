"""`holdfast sessions undo`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import SESSION


@click.command("undo")
@click.argument("session", type=SESSION)
@shared_options
@pass_cli
def command(cli: Cli, session: str) -> None:
    """Take the last turn of SESSION out of what the model sees.

    It stays in the log, and what it did to files is not taken back.
    """
    done = "the model does not see the last turn any more; it stays in the log"
    cli.accepted(cli.client.sessions.undo(session), done)
