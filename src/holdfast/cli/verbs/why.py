"""`holdfast why`: what is being done or waited for, and on whose word."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.gateway import quote
from holdfast.cli.screen import clean, dim, moment, terminal_width, wrap
from holdfast.cli.values import SESSION


@click.command("why")
@click.argument("id", type=SESSION, required=False)
@shared_options
@pass_cli
def command(cli: Cli, id: str | None) -> None:
    """Say what a session is doing or waiting for, since when, and what woke or stopped it.

    Every sentence names the event that it rests on. Without an ID: everything that is at work or waits.
    """
    found = cli.gateway.get(f"/v1/sessions/{quote(id)}/why" if id is not None else "/v1/why")
    if cli.json:
        cli.print_json(found)
        return
    if not found["sentences"]:
        click.echo("Nothing is at work, and nothing waits." if id is None else "Nothing has happened here yet.")
    width = max(20, terminal_width() - 2)
    for sentence in found["sentences"]:
        click.echo("\n  ".join(wrap(clean(sentence["text"]), width)))
        where = f"{sentence['stream']} {sentence['version']}" if sentence["version"] else sentence["stream"]
        click.echo(dim(f"  {where}, {moment(sentence['at'])}"))
