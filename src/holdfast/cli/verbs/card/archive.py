"""`holdfast card archive`."""

from __future__ import annotations

import click

from holdfast.cli.cards import find
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.gateway import Json
from holdfast.cli.told import command as give
from holdfast.cli.values import CARD


@click.command("archive")
@click.argument("card", type=CARD)
@shared_options
@pass_cli
def command(cli: Cli, card: str) -> None:
    """Take CARD off the board. Its workspace goes only when nothing would be lost with it; it says what was kept."""
    accepted = give(cli.gateway, card, "/archive", {})
    if cli.json:
        cli.print_json({key: accepted[key] for key in ("card", "version", "seq", "kept")})
        return
    click.echo(f"{accepted['card']}: archived; {_workspace(find(cli.gateway, accepted['card']), accepted['kept'])}")


def _workspace(found: Json, kept: str) -> str:
    """What became of it, and why."""
    kind = str(found["card"]["workspace"])
    if kept:
        return f"its workspace was kept (nothing goes that would be lost): {kept}"
    if kind.startswith("dir:"):
        return f"its workspace {kind.removeprefix('dir:')} is yours and stays"
    if not found["runs"]:
        return "it never had a workspace"
    return f"its workspace {found['runs'][-1]['workspace']} was removed: nothing is lost with it"
