"""`holdfast sessions delete`: shows what will go, and asks."""

from __future__ import annotations

import sys

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import FAILED, USAGE, CliError
from holdfast.cli.running import choose, running_option
from holdfast.cli.screen import one_line, plural
from holdfast.cli.values import SESSION
from holdfast.client.sessions import WhatRuns

OUTPUTS = "the outputs of the commands that it waited for"
"""They are stored in the results of its calls, and nowhere else."""


@click.command("delete")
@click.argument("session", type=SESSION)
@running_option
@click.option("--yes", is_flag=True, help="Do not ask; while something runs it needs --running.")
@shared_options
@pass_cli
def command(cli: Cli, session: str, running: WhatRuns | None, yes: bool) -> None:
    """Delete SESSION with all its events, for good. A session that is at work is refused.

    The outputs of the commands that it waited for go with it; those of background commands stay with their tasks.

    While commands of it run, it shows them and asks: keep, stop, cancel.
    """
    row = cli.client.sessions.get(session).session
    what = f"{row.id} “{one_line(row.title)}” with {plural(row.version, 'event')} and {OUTPUTS}"
    chosen = choose(cli, row, running, ask=not yes)
    if not yes:
        _confirm(f"Delete {what}, for good?")
    cli.accepted(cli.client.sessions.delete(row.id, running=chosen), f"deleted “{one_line(row.title)}”")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise CliError(question, hint="nobody can be asked here: repeat it with --yes.", code=USAGE)
    if not click.confirm(question, err=True):
        raise CliError("Nothing was deleted.", code=FAILED)
