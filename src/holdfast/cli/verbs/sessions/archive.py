"""`holdfast sessions archive`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.running import choose, running_option
from holdfast.cli.values import SESSION
from holdfast.client.sessions import WhatRuns


@click.command("archive")
@click.argument("session", type=SESSION)
@running_option
@shared_options
@pass_cli
def command(cli: Cli, session: str, running: WhatRuns | None) -> None:
    """Take SESSION out of the list; nothing is deleted, and a message brings it back.

    While commands of it run, it shows them and asks: keep, stop, cancel.
    """
    row = cli.client.sessions.get(session).session
    accepted = cli.client.sessions.archive(row.id, running=choose(cli, row, running))
    cli.accepted(accepted, f"archived; `{program()} sessions restore` brings it back")
