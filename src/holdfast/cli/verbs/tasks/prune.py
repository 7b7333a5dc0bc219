"""`holdfast tasks prune`: shows what would go; with --yes it goes."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import dim, plural, size, table
from holdfast.cli.tasks import ENDED, ended_cells
from holdfast.cli.values import SIZE, SPAN
from holdfast.client.lenient import convert
from holdfast.schemas.tasks import PruneResult

WEEK = 7 * 86_400_000
LISTED = 50


@click.command("prune")
@click.option("--older-than", type=SPAN, metavar="TIME", help="Only what ended longer ago: 2h, 7d.")
@click.option("--keep-last", type=click.IntRange(min=0), metavar="N", help="But not the last N that ended.")
@click.option("--state", type=click.Choice(["done", "failed", "stopped", "lost"]), help="Only what ended like this.")
@click.option("--larger-than", type=SIZE, metavar="SIZE", help="Only with more output than this: 500k, 20M, 1G.")
@click.option("--yes", is_flag=True, help="Delete it, for good.")
@shared_options
@pass_cli
def command(
    cli: Cli, older_than: int | None, keep_last: int | None, state: str | None, larger_than: int | None, yes: bool
) -> None:
    """Show which ended tasks would be deleted, and how much that frees; --yes deletes them with their output.

    All conditions that are given must hold; without any it is --older-than 7d. What runs or is pinned always stays.
    """
    given = {"older_than_ms": older_than, "keep_last": keep_last, "state": state, "larger_than": larger_than}
    wanted: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    told = cli.client.command("POST", "/v1/tasks/prune", (wanted or {"older_than_ms": WEEK}) | {"confirm": yes})
    if cli.json:
        cli.print_json(told)
        return
    result = convert(told, PruneResult)
    rule = "" if wanted else " (ended more than 7 days ago)"
    if not result.count:
        click.echo(f"No task would go{rule}." if not yes else f"There was no task to delete{rule}.")
        return
    tasks = result.tasks[:LISTED]
    click.echo(table(ENDED, ended_cells(tasks)))
    if result.count > len(tasks):
        click.echo(f"… and {plural(result.count - len(tasks), 'more task')}")
    what = plural(result.count, "task") + rule
    click.echo(f"{'deleted' if yes else 'would delete'} {what} and {'freed' if yes else 'free'} {size(result.bytes)}")
    if not yes:
        click.echo(dim(f"delete them, for good: the same with --yes; keep one: {program()} tasks pin ID"), err=True)
