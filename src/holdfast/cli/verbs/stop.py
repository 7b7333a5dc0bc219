"""`holdfast stop`: end the turn of a session, and say what ends with it and what goes on."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import NOT_FOUND, CliError
from holdfast.cli.hints import program
from holdfast.cli.screen import one_line, shorten
from holdfast.cli.values import SESSION
from holdfast.client.errors import ApiError
from holdfast.domain.errors import HoldfastError
from holdfast.schemas.tasks import TaskView


@click.command("stop")
@click.argument("session", type=SESSION)
@shared_options
@pass_cli
def command(cli: Cli, session: str) -> None:
    """End the turn that SESSION is in, with the command that it waits for; queued messages and tasks stay."""
    try:
        id = cli.client.sessions.get(session).session.id
    except ApiError as error:
        raise _perhaps_a_task(cli, session, error) from error
    tasks = cli.client.tasks.list(state="running", session=id, foreground=True, limit=500).tasks
    accepted = cli.client.sessions.stop(id)
    ends = [task for task in tasks if task.foreground or task.worker == id]
    goes_on = [task for task in tasks if task not in ends]
    if cli.json:
        kept = {"session": accepted.session, "version": accepted.version, "seq": accepted.seq}
        cli.print_json(kept | {"ends": [t.id for t in ends], "goes_on": [t.id for t in goes_on]})
        return
    click.echo(f"{id}: the turn is being stopped")
    for task in ends:
        click.echo(f"  ends with it: {_named(task)}")
    for task in goes_on:
        click.echo(f"  goes on:      {_named(task)} ({program()} tasks stop {task.id[:8]})")


def _named(task: TaskView) -> str:
    return f"{task.kind} {task.id[:8]} {shorten(one_line(task.title), 40)}"


def _perhaps_a_task(cli: Cli, id: str, error: ApiError) -> HoldfastError:
    if not error.is_not_found:
        return error
    try:
        task = cli.client.tasks.get(id)
    except ApiError:
        return error
    return CliError(f"{task.id} is a task.", hint=f"`holdfast tasks stop {task.id}` ends it.", code=NOT_FOUND)
