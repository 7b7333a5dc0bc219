"""`holdfast sessions delete`: shows what will go, and asks."""

from __future__ import annotations

import sys

import click

from holdfast.cli.commands import tell
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import FAILED, USAGE, CliError
from holdfast.cli.gateway import quote
from holdfast.cli.screen import one_line, plural
from holdfast.cli.values import SESSION


@click.command("delete")
@click.argument("session", type=SESSION)
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared_options
@pass_cli
def command(cli: Cli, session: str, yes: bool) -> None:
    """Delete SESSION with all its events, for good. A session that is at work is refused."""
    row = cli.gateway.get(f"/v1/sessions/{quote(session)}")["session"]
    what = f"{row['id']} “{one_line(row['title'])}” with {plural(row['version'], 'event')}"
    if not yes:
        _confirm(f"Delete {what}, for good?")
    tell(cli, "DELETE", row["id"], "", None, done=f"deleted “{one_line(row['title'])}”")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise CliError(question, hint="nobody can be asked here: repeat it with --yes.", code=USAGE)
    if not click.confirm(question, err=True):
        raise CliError("Nothing was deleted.", code=FAILED)
