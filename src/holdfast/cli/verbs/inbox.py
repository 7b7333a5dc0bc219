"""`holdfast inbox`: everything that waits for a person."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.screen import SHORT_ID, Column, ago, dim, one_line, table

COLUMNS = (
    Column("ID"),
    Column("WHAT", states=True),
    Column("SESSION"),
    Column("SINCE"),
    Column("ABOUT", flexible=True),
)


@click.command("inbox")
@shared_options
@pass_cli
def command(cli: Cli) -> None:
    """List every question, approval and old turn that waits for a person, from all sessions."""
    found = cli.gateway.get("/v1/inbox")
    if cli.json:
        cli.print_json(found)
    elif not found["waits"]:
        click.echo("Nothing waits for you.")
    else:
        click.echo(table(COLUMNS, [_cells(wait) for wait in found["waits"]]))
        click.echo(dim("answer with: holdfast answer ID TEXT, --allow or --deny"), err=True)


def _cells(wait: dict[str, object]) -> list[str]:
    choices = wait["choices"]
    offered = f" ({', '.join(map(str, choices))})" if choices and isinstance(choices, list) else ""
    about = one_line(str(wait["reason"])) + (offered if wait["purpose"] in ("question", "compaction") else "")
    return [
        str(wait["id"]),
        str(wait["purpose"]),
        str(wait["session"])[:SHORT_ID],
        ago(int(str(wait["opened_at"]))),
        about,
    ]
