"""What happens to the running commands of a session that is reset, archived or deleted."""

from __future__ import annotations

from typing import Literal

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import CONFLICT, CliError
from holdfast.cli.render import sessions as render
from holdfast.client.sessions import WhatRuns
from holdfast.schemas.sessions import SessionView

AT_WORK = ("running", "waiting", "suspended", "queued")
ANSWERS: dict[str, Literal["keep", "stop", "cancel"]]
ANSWERS = {"k": "keep", "keep": "keep", "s": "stop", "stop": "stop", "c": "cancel", "cancel": "cancel"}
running_option = click.option(
    "--running", type=click.Choice(["keep", "stop"]), help="What to do with its commands that are still running."
)


def ask_running_policy(
    cli: Cli, session: SessionView, running: WhatRuns | None, *, ask: bool = True
) -> WhatRuns | None:
    """What happens to the running tasks of a session: as given by the caller, else as a person answers."""
    if session.state in AT_WORK:
        hint = f"Run `holdfast stop {session.id}` first."
        raise CliError(f"The session is {session.state}.", hint=hint, code=CONFLICT)
    tasks = [] if running is not None else cli.client.sessions.reset_status(session.id).running
    if not tasks:
        return running
    if not ask or not cli.terminal.can_ask:
        why = "--yes does not choose for you. " if not ask else ""
        raise CliError(
            f"{len(tasks)} still running in the background: {'; '.join(map(render.running_task, tasks))}.",
            hint=f"{why}Choose what happens to them: --running keep or --running stop.",
            code=CONFLICT,
        )
    cli.note(render.running_tasks_table(tasks))
    if any(task.kind != "process" for task in tasks):
        cli.hint("agents continue in both cases; `holdfast tasks stop ID` ends one")
    question = "Still running: k keep them running, s stop them, c cancel"
    while (answer := cli.terminal.prompt(question).strip().lower()) not in ANSWERS:
        cli.note("k, s or c?")
    if (chosen := ANSWERS[answer]) == "cancel":
        raise CliError("Cancelled; nothing was changed.")
    return chosen
