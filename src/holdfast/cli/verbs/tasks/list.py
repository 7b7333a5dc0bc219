"""`holdfast tasks list`: what runs now."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import table
from holdfast.cli.tasks import KINDS, NOTHING_RUNS, RUNNING, running_cells, running_rows
from holdfast.client.lenient import convert
from holdfast.schemas.tasks import TaskView


@click.command("list")
@click.option("--kind", type=click.Choice(KINDS), help="Only commands, agents, or runs of cards.")
@click.option("--all", "everything", is_flag=True, help="Also commands that a turn waits for.")
@shared_options
@pass_cli
def command(cli: Cli, kind: str | None, everything: bool) -> None:
    """List what runs now, across all sessions: commands, agents and cards, what they do and for how long."""
    rows = running_rows(cli.client, foreground=everything, kind=kind)
    if cli.json:
        cli.print_json({"tasks": rows})
    elif rows:
        click.echo(table(RUNNING, running_cells(convert(rows, list[TaskView]))))
    elif kind is not None:
        click.echo(f"No {kind} runs in the background; what ran before: {program()} tasks history --kind {kind}")
    else:
        click.echo(f"{NOTHING_RUNS} Try: {program()} start -- sleep 60; what ran before: {program()} tasks history")
