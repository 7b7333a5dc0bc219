"""Giving a command to a card or a board, for the verbs that do no more than that."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli
from holdfast.cli.screen import clean
from holdfast.client.client import Client
from holdfast.client.http import Json, quote


def command(client: Client, id: str, action: str, body: Json, *, method: str = "POST") -> Json:
    """Give it; what was accepted."""
    return client.command(method, f"/v1/cards/{quote(id)}{action}", body)


def tell(cli: Cli, id: str, action: str, body: Json, *, done: str, method: str = "POST") -> None:
    """Give it, and say what was done, or where it stands in the log."""
    about_card(cli, command(cli.client, id, action, body, method=method), done)


def about_card(cli: Cli, accepted: Json, done: str) -> None:
    """What was done, or where it stands in the log."""
    if cli.json:
        cli.print_json({key: accepted[key] for key in ("card", "version", "seq")})
    else:
        click.echo(f"{accepted['card']}: {clean(done)}")


def about_board(cli: Cli, accepted: Json, done: str) -> None:
    """The same for a board."""
    if cli.json:
        cli.print_json({key: accepted[key] for key in ("board", "version", "seq")})
    else:
        click.echo(f"{accepted['board']}: {clean(done)}")
