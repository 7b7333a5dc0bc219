"""`holdfast board create`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.conversation import say
from holdfast.cli.told import about_board


@click.command("create")
@click.argument("name")
@click.option("--title", metavar="TEXT", help="What stands above it; by default its name.")
@shared_options
@pass_cli
def command(cli: Cli, name: str, title: str | None) -> None:
    """Make a board. NAME is its id: small letters, digits, `-` and `_`."""
    body = {"board": name} | ({"title": title} if title is not None else {})
    accepted = say(cli, "/v1/boards", body, shown_by="holdfast board list")
    about_board(cli, accepted, f"made; write on it: holdfast card add TITLE --board {name}")
