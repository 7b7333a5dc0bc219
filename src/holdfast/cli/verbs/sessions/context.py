"""`holdfast sessions context`."""

from __future__ import annotations

import click

from holdfast.cli.chapters import context_line
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import Column, dim, one_line, table
from holdfast.cli.values import SESSION
from holdfast.client.http import quote

COLUMNS = (Column("TURN", right=True), Column("ROLE"), Column("CHARS", right=True), Column("TEXT", flexible=True))


@click.command("context")
@click.argument("session", type=SESSION)
@shared_options
@pass_cli
def command(cli: Cli, session: str) -> None:
    """Show what the model sees of SESSION, and about how large it is.

    Also its chapter, whether a summary or a digest replaces older turns, and when it is summarised.
    """
    found = cli.client.get(f"/v1/sessions/{quote(session)}/context")
    if cli.json:
        cli.print_json(found)
        return
    rows = [["", "system", str(len(found["instructions"])), one_line(found["instructions"])]]
    rows += [[str(m["turn"]), m["role"], str(m["characters"]), one_line(m["text"])] for m in found["messages"]]
    click.echo(table(COLUMNS, rows))
    click.echo(dim(f"model {found['model']}; tools: {', '.join(found['tools'])}"))
    click.echo(context_line(found))
