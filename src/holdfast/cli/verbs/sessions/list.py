"""`holdfast sessions list`."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.hints import program
from holdfast.cli.screen import Column, ago, dim, table, unique_length
from holdfast.schemas.sessions import SessionView

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
    if cli.json:
        cli.print_json(cli.client.get("/v1/sessions", archived=archived, limit=limit, before=before))
        return
    page = cli.client.sessions.list(archived=archived, limit=limit, before=before or "")
    if page.sessions:
        click.echo(table(COLUMNS, _cells(page.sessions)))
        if page.next:
            flag = " --archived" if archived else ""
            click.echo(dim(f"more: {program()} sessions list{flag} --before {page.next}"), err=True)
    elif archived:
        click.echo("No session is archived.")
    elif before:
        click.echo("No more sessions.")
    else:
        click.echo(f'No sessions yet. Try: {program()} run --profile demo "say hello"')


def state_word(row: SessionView) -> str:
    """Its state; when it rests, how its last turn ended."""
    return row.turn_state if row.state == "idle" and row.turn_state else row.state


def _cells(rows: list[SessionView]) -> list[list[str]]:
    length = unique_length([row.id for row in rows])
    return [[row.id[:length], state_word(row), str(row.message_count), ago(row.updated_at), row.title] for row in rows]
