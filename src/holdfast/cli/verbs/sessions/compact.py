"""`holdfast sessions compact`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.values import SESSION, TEXT


@click.command("compact")
@click.argument("session", type=SESSION)
@click.argument("instructions", type=TEXT, required=False)
@shared_options
@pass_cli
def command(cli: Cli, session: str, instructions: str | None) -> None:
    """Make what the model sees of SESSION shorter: a summary takes the place of its older turns.

    INSTRUCTIONS tell the model what matters. The originals stay in the log and in the search.
    """
    done = f"a summary was asked for; `{program()} why` says what becomes of it, `sessions context` what the model sees"
    cli.accepted(cli.client.sessions.compact(session, instructions=instructions or ""), done)
