"""`holdfast sessions list`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, ago, dim, table, unique_length
from holdfast.client.http import Json

COLUMNS = (
    Column("ID"),
    Column("STATE", states=True),
    Column("MSGS", right=True),
    Column("UPDATED"),
    Column("TITLE", flexible=True),
)


@click.command("list")
@click.option("--archived", is_flag=True, help="Those that were archived.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many.")
@click.option("--before", metavar="CURSOR", help="The page after this cursor (`next` of the page before).")
@shared_options
@pass_cli
def command(cli: Cli, archived: bool, limit: int, before: str | None) -> None:
    """List the sessions, newest first."""
    page = cli.client.get("/v1/sessions", archived=str(archived).lower(), limit=limit, before=before)
    rows = page["sessions"]
    if cli.json:
        cli.print_json(page)
    elif rows:
        click.echo(table(COLUMNS, _cells(rows)))
        if page["next"]:
            flag = " --archived" if archived else ""
            click.echo(dim(f"more: {program()} sessions list{flag} --before {page['next']}"), err=True)
    elif archived:
        click.echo("No session is archived.")
    elif before:
        click.echo("No more sessions.")
    else:
        click.echo(f'No sessions yet. Try: {program()} run --profile demo "say hello"')


def state_word(row: Json) -> str:
    """Its state; when it rests, how its last turn ended."""
    state = row["turn_state"] if row["state"] == "idle" and row["turn_state"] else row["state"]
    return str(state)


def _cells(rows: list[Json]) -> list[list[str]]:
    length = unique_length([row["id"] for row in rows])
    return [
        [row["id"][:length], state_word(row), str(row["message_count"]), ago(row["updated_at"]), row["title"]]
        for row in rows
    ]
