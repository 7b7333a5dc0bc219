"""`holdfast sessions undo-reset`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.values import SESSION


@click.command("undo-reset")
@click.argument("session", type=SESSION)
@shared_options
@pass_cli
def command(cli: Cli, session: str) -> None:
    """Let the model see the chapter before the last reset of SESSION again, and what was said since.

    What the reset stopped stays stopped.
    """
    done = "the model sees the chapter before again, and what was said since"
    cli.accepted(cli.client.sessions.undo_reset(session), done)
