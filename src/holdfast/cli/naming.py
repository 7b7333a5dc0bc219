"""Messages to a task: which session works on it."""

from __future__ import annotations

from holdfast.cli.errors import CONFLICT, CliError
from holdfast.client.client import Client
from holdfast.client.errors import ApiError
from holdfast.schemas.tasks import TaskView


def worker_of(client: Client, id: str, otherwise: ApiError) -> str:
    """The session that works on a task. A command has none, which is said; without a task it is as it was before."""
    task = _task(client, id)
    if task is None:
        raise otherwise
    if not task.worker:
        raise CliError(
            f"Task {task.id} is a command, and nobody is there to be told something.",
            hint=f"`holdfast tasks write {task.id} TEXT` types into it, if its input is open.",
            code=CONFLICT,
        )
    return task.worker


def _task(client: Client, id: str) -> TaskView | None:
    try:
        return client.tasks.get(id)
    except ApiError as error:
        if not error.is_not_found:
            raise
        return None
