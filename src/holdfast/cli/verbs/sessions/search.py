"""`holdfast sessions search`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import Column, ago, table, unique_length
from holdfast.cli.values import TEXT

COLUMNS = (
    Column("SESSION"),
    Column("VERSION", right=True),
    Column("WHO"),
    Column("WHEN"),
    Column("TEXT", flexible=True),
)
WHO = {"user": "you"}


@click.command("search")
@click.argument("text", type=TEXT)
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many.")
@shared_options
@pass_cli
def command(cli: Cli, text: str, limit: int) -> None:
    """Find TEXT in any session, newest first."""
    if cli.json:
        cli.print_json(cli.client.get("/v1/search", q=text, limit=limit))
        return
    hits = cli.client.sessions.search(text, limit=limit).hits
    if not hits:
        click.echo("Nothing found. The search is for the text as it is; fewer letters find more.")
        return
    length = unique_length([hit.session for hit in hits])
    cells = [
        [
            hit.session[:length],
            str(hit.version),
            WHO.get(hit.role, hit.role),
            ago(hit.at),
            hit.snippet,
        ]
        for hit in hits
    ]
    click.echo(table(COLUMNS, cells))
