"""`holdfast stop`: end a turn."""

from __future__ import annotations

from holdfast.cli.commands.sessions import session_argument
from holdfast.cli.context import Cli
from holdfast.cli.errors import NOT_FOUND, CliError
from holdfast.cli.groups import verb
from holdfast.cli.hints import program
from holdfast.cli.screen import SHORT_ID, one_line, shorten
from holdfast.client.errors import ApiError
from holdfast.domain.errors import HoldfastError
from holdfast.schemas.tasks import TaskView

TITLE = 40


@verb()
@session_argument
def stop(cli: Cli, session: str) -> None:
    """Stop the running turn of SESSION, and the command that it waits for. Queued messages and tasks stay."""
    try:
        id = cli.client.sessions.get(session).session.id
    except ApiError as error:
        raise _perhaps_a_task(cli, session, error) from error
    tasks = cli.client.tasks.list(state="running", session=id, foreground=True, limit=500).tasks
    accepted = cli.client.sessions.stop(id)
    ends = [task for task in tasks if task.foreground or task.worker == id]
    goes_on = [task for task in tasks if task not in ends]
    lines = ["the turn is being stopped", *(f"  ends with it:  {_task(task)}" for task in ends)]
    lines += [f"  keeps running: {_task(task)} ({program()} tasks stop {task.id[:SHORT_ID]})" for task in goes_on]
    cli.accepted(accepted, "\n".join(lines), ends=[one.id for one in ends], goes_on=[one.id for one in goes_on])


def _task(task: TaskView) -> str:
    return f"{task.kind} {task.id[:SHORT_ID]} {shorten(one_line(task.title), TITLE)}"


def _perhaps_a_task(cli: Cli, id: str, error: ApiError) -> HoldfastError:
    if not error.is_not_found:
        return error
    try:
        task = cli.client.tasks.get(id)
    except ApiError:
        return error
    return CliError(f"{task.id} is a task.", hint=f"`holdfast tasks stop {task.id}` ends it.", code=NOT_FOUND)
