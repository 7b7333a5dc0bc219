"""`holdfast tasks history`: the archive."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import dim, table
from holdfast.cli.tasks import ENDED, KINDS, ended_cells
from holdfast.cli.values import SESSION, SINCE
from holdfast.client.lenient import convert
from holdfast.schemas.tasks import TaskPage


@click.command("history")
@click.option("--kind", type=click.Choice(KINDS), help="Only commands, agents, or runs of cards.")
@click.option("--session", type=SESSION, metavar="ID", help="Only what this session started.")
@click.option("--since", type=SINCE, metavar="TIME", help="Only what started after: 2h, 7d, or a date.")
@click.option(
    "--state", type=click.Choice(["running", "done", "failed", "stopped", "lost"]), help="Only what stands like this."
)
@click.option("--search", metavar="TEXT", help="Only with this in the title, the command or the summary.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many.")
@click.option("--before", metavar="CURSOR", help="The page after this cursor (`next` of the page before).")
@click.option("--all", "everything", is_flag=True, help="Also commands that a turn waited for.")
@shared_options
@pass_cli
def command(cli: Cli, /, everything: bool, search: str | None, before: str | None, **wanted: object) -> None:
    """List what ever ran, newest first. Nothing leaves the list until somebody prunes it."""
    body = cli.client.get("/v1/tasks", text=search, all=everything, before=before, **wanted)
    if cli.json:
        cli.print_json(body)
        return
    page = convert(body, TaskPage)
    if page.tasks:
        click.echo(table(ENDED, ended_cells(page.tasks)))
        if page.next:
            click.echo(dim(f"more: the same with --before {page.next}"), err=True)
    elif before:
        click.echo("No more tasks.")
    elif search or any(value is not None for name, value in wanted.items() if name != "limit"):
        hint = "" if everything else "; --all also looks at commands that a turn waited for"
        click.echo(f"No task fits{hint}. `{program()} tasks search TEXT` looks into their output.")
    else:
        click.echo(f"No tasks yet. Try: {program()} start -- sleep 60")
