"""`holdfast why`: what is being done or waited for, and on whose word."""

from __future__ import annotations

import click

from holdfast.cli.chapters import RUNNING, in_full, opened_by, outlook, running_cells
from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.naming import named
from holdfast.cli.render.tasks import task_details
from holdfast.cli.render.why import why_lines
from holdfast.cli.screen import facts, table
from holdfast.cli.values import SESSION
from holdfast.client.http import Json
from holdfast.client.lenient import convert
from holdfast.schemas.gateway import Statement
from holdfast.schemas.tasks import TaskView


@click.command("why")
@click.argument("id", type=SESSION, required=False)
@click.option("--verbose", "-v", is_flag=True, help="In full: every blocker with its process, its evidence, its times.")
@shared_options
@pass_cli
def command(cli: Cli, id: str | None, verbose: bool) -> None:
    """Show what a session, a task or a card is doing or waiting for, for how long, at whose request, and how it ended.

    Every sentence names the event that it rests on. Without an ID: everything that is at work or waits.
    """
    if verbose and id is None:
        raise CliError("--verbose needs an ID.", hint="`holdfast why` names what is at work.", code=USAGE)
    found = _ask(cli, id, verbose=verbose)
    if cli.json:
        cli.print_json(found)
        return
    if not found["sentences"]:
        click.echo("Nothing is at work, and nothing waits." if id is None else "Nothing has happened here yet.")
    for line in why_lines(convert(found["sentences"], list[Statement])):
        click.echo(line)
    if "reset" in found:
        for block in in_full(found["reset"], found["opened"]):
            click.echo(f"\n{facts(block)}")
        if found["reset"]["running"]:
            click.echo(f"\n{table(RUNNING, running_cells(found['reset']['running']))}")
    if "task" in found:
        click.echo(f"\n{task_details(convert(found['task'], TaskView))}")


def _ask(cli: Cli, id: str | None, *, verbose: bool) -> Json:
    """About a card, a session, a task, or the last two when the one is the work of the other."""
    if id is None:
        everything: Json = cli.client.get("/v1/why")
        return everything
    session, task, card = named(cli.client, id)
    if card:
        about: Json = cli.client.get(f"/v1/cards/{card}/why")
        return about
    found: Json = cli.client.get(f"/v1/tasks/{task}/why" if not session else f"/v1/sessions/{session}/why")
    if session and task:
        found["sentences"] += cli.client.get(f"/v1/tasks/{task}/why")["sentences"]
    if verbose and session:
        found["reset"] = outlook(cli.client, session)
        found["opened"] = opened_by(cli.client, session, found["reset"]["chapter"])
    if verbose and task:
        found["task"] = cli.client.get(f"/v1/tasks/{task}")
    return found
