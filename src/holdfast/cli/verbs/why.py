"""`holdfast why`: what is being done or waited for, and on whose word."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.naming import named
from holdfast.cli.render.sessions import all_reset_details
from holdfast.cli.render.tasks import task_details
from holdfast.cli.render.why import why_lines
from holdfast.cli.values import SESSION
from holdfast.client.events import stored_records
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
        from holdfast.domain.events.chapter import ChapterOpened
        from holdfast.schemas.chapters import ResetOutlook

        reset = convert(found["reset"], ResetOutlook)
        opened = convert(found["opened"], ChapterOpened) if found["opened"] is not None else None
        click.echo(f"\n{all_reset_details(reset, opened)}")
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
        found["reset"] = cli.client.get(f"/v1/sessions/{session}/reset")
        version = found["reset"]["chapter"]["version"]
        opened = stored_records(cli.client, session, after=version - 1, page=1) if version else iter(())
        found["opened"] = next((item.event for item in opened), None)
    if verbose and task:
        found["task"] = cli.client.get(f"/v1/tasks/{task}")
    return found
