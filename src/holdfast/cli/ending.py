"""Commands about one task that are the same from the command line and the chat: end it, keep it."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import CONFLICT, CliError
from holdfast.cli.hints import program
from holdfast.cli.tasks import find, in_words
from holdfast.client.client import Client
from holdfast.schemas.tasks import TaskAccepted, TaskView

PATIENCE_SECONDS = 12
"""A command that is asked to end gets 5 s; then it is ended by force, which takes a moment too."""


def ended(client: Client, id: str, *, force: bool) -> tuple[TaskAccepted, TaskView]:
    """Want its end and wait a while for it: what was accepted, and the task as it is then."""
    task = find(client, id)
    accepted = client.tasks.stop(task.id, force=force)
    return accepted, client.tasks.wait(task.id, seconds=PATIENCE_SECONDS)


def how_it_ended(task: TaskView) -> str:
    """One line, with whoever outlived it."""
    if task.state == "running":
        return f"was asked to end, and is still {in_words(task)}"
    survivors = f"; still alive: {', '.join(task.survivors)}" if task.survivors else ""
    return in_words(task) + survivors


def end(cli: Cli, id: str, *, force: bool) -> None:
    """End it and say how that went."""
    cli.start_gateway()
    accepted, task = ended(cli.client, id, force=force)
    if cli.json:
        kept = {"task": accepted.task, "version": accepted.version, "seq": accepted.seq}
        cli.print_json(kept | {"state": task.state, "reason": task.reason, "survivors": task.survivors})
    else:
        click.echo(f"{task.id}: {how_it_ended(task)}")
    if task.state == "running":
        hint = "" if force else f"`{program()} tasks kill {task.id}` ends it at once."
        raise CliError("It has not ended yet.", hint=hint or f"`holdfast why {task.id}` says more.", code=CONFLICT)


def pin(cli: Cli, id: str, *, pinned: bool) -> None:
    """Keep it whatever is pruned, or not any more."""
    accepted = cli.client.tasks.pin(find(cli.client, id).id, pinned=pinned)
    cli.accepted(accepted, "kept whatever is pruned" if pinned else "a prune may take it again")
