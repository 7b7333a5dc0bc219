"""Ids that may name a session or a task: which of the two is meant."""

from __future__ import annotations

from holdfast.cli.errors import CONFLICT, NOT_FOUND, CliError, Refused
from holdfast.cli.gateway import Gateway, Json, quote


def worker_of(gateway: Gateway, id: str, otherwise: CliError) -> str:
    """The session that works on a task. A command has none, which is said; without a task it is as it was before."""
    task = _task(gateway, id)
    if task is None:
        raise otherwise
    if not task["worker"]:
        raise CliError(
            f"Task {task['id']} is a command, and nobody is there to be told something.",
            hint=f"`holdfast tasks write {task['id']} TEXT` types into it, if its input is open.",
            code=CONFLICT,
        )
    return str(task["worker"])


def named(gateway: Gateway, id: str) -> tuple[str, str]:
    """The session and the task that an id names; an agent task and its session have the same. One may be empty."""
    task = _task(gateway, id)
    try:
        session = str(gateway.get(f"/v1/sessions/{quote(id)}")["session"]["id"])
    except Refused as error:
        if error.code != NOT_FOUND or task is None:
            raise
        return "", str(task["id"])
    if task is None or task["id"] == session:
        return session, session if task is not None else ""
    if id == session:
        return session, ""
    raise CliError(
        f"{id} is the beginning of session {session} and of task {task['id']}.", hint="Give more of it.", code=CONFLICT
    )


def _task(gateway: Gateway, id: str) -> Json | None:
    try:
        found: Json = gateway.get(f"/v1/tasks/{quote(id)}")
    except Refused as error:
        if error.code != NOT_FOUND:
            raise
        return None
    return found
