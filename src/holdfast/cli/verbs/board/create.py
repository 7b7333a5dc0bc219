"""`holdfast board create`."""

from __future__ import annotations

import re
import shlex

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.conversation import say
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.hints import program
from holdfast.client.lenient import convert
from holdfast.schemas.cards import BoardAccepted

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")


@click.command("create")
@click.argument("name")
@click.option("--title", metavar="TEXT", help="What stands above it; by default its name.")
@shared_options
@pass_cli
def command(cli: Cli, name: str, title: str | None) -> None:
    """Make a board. NAME is its id: small letters, digits, `-` and `_`."""
    if not NAME.match(name):
        known = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")[:64] or "web"
        raise CliError(
            f"{name!r} is no name for a board: small letters, digits, `-` and `_`, at most 64.",
            hint=f"holdfast board create {known} --title {shlex.quote(name)}",
            code=USAGE,
        )
    body = {"board": name} | ({"title": title} if title is not None else {})
    accepted = say(cli, "/v1/boards", body, shown_by=f"{program()} board list")
    cli.accepted(convert(accepted, BoardAccepted), f"made; write on it: {program()} card add TITLE --board {name}")
