"""`holdfast tasks search`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import dim, table
from holdfast.cli.tasks import HITS, hit_cells
from holdfast.cli.values import TEXT


@click.command("search")
@click.argument("text", type=TEXT)
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many.")
@shared_options
@pass_cli
def command(cli: Cli, text: str, limit: int) -> None:
    """Find TEXT in the output of all tasks, newest first; of a very long output in its beginning and its end."""
    if cli.json:
        cli.print_json(cli.client.get("/v1/tasks/search", q=text, limit=limit))
    elif hits := cli.client.tasks.search(text, limit=limit).hits:
        click.echo(table(HITS, hit_cells(hits)))
        click.echo(dim(f"read one: {program()} tasks log ID"), err=True)
    else:
        click.echo("Nothing found. The search is for the text as it is; fewer letters find more.")
