"""Ids that may name a session, a task or a card: which of them is meant."""

from __future__ import annotations

from holdfast.cli.errors import CONFLICT, NOT_FOUND, CliError
from holdfast.client.client import Client
from holdfast.client.errors import ApiError
from holdfast.client.http import Json, quote
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


def named(client: Client, id: str) -> tuple[str, str, str]:
    """The session, the task and the card that an id names; those that it does not name are empty.

    An agent task and its session have the same id. What is the whole id of one of them names that one.
    """
    found = {
        "session": _found(client, f"/v1/sessions/{quote(id)}", "session"),
        "task": _found(client, f"/v1/tasks/{quote(id)}", ""),
        "card": _found(client, f"/v1/cards/{quote(id)}", "card"),
    }
    exact = {kind: known for kind, known in found.items() if known == id}
    meant = exact or {kind: known for kind, known in found.items() if known}
    if not meant:
        raise CliError(
            f"There is no session, task or card {id}.",
            hint="`holdfast sessions`, `holdfast tasks history` and `holdfast card list` list them.",
            code=NOT_FOUND,
        )
    if len(set(meant.values())) > 1:
        listed = " and of ".join(f"{kind} {known}" for kind, known in meant.items())
        raise CliError(f"{id} is the beginning of {listed}.", hint="Give more of it.", code=CONFLICT)
    return meant.get("session", ""), meant.get("task", ""), meant.get("card", "")


def _found(client: Client, target: str, part: str) -> str:
    """The whole id; empty when there is none like this. That it was deleted is said."""
    try:
        found: Json = client.get(target)
    except ApiError as error:
        if error.status != 404:
            raise
        return ""
    return str((found[part] if part else found)["id"])


def _task(client: Client, id: str) -> TaskView | None:
    try:
        return client.tasks.get(id)
    except ApiError as error:
        if not error.is_not_found:
            raise
        return None
