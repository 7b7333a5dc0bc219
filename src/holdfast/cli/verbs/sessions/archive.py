"""`holdfast sessions archive`."""

from __future__ import annotations

import click

from holdfast.cli.commands import tell
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.running import choose, running_option
from holdfast.cli.values import SESSION
from holdfast.client.http import quote


@click.command("archive")
@click.argument("session", type=SESSION)
@running_option
@shared_options
@pass_cli
def command(cli: Cli, session: str, running: str | None) -> None:
    """Take SESSION out of the list; nothing is deleted, and a message brings it back.

    While commands of it run, it shows them and asks: keep, stop, cancel.
    """
    row = cli.client.get(f"/v1/sessions/{quote(session)}")["session"]
    body = choose(cli, row, running)
    tell(cli, "POST", row["id"], "/archive", body, done=f"archived; `{program()} sessions restore` brings it back")
