"""`holdfast why`: what a session, a task or a card is doing or waiting for."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.groups import verb
from holdfast.cli.render.sessions import all_reset_details
from holdfast.cli.render.tasks import task_details
from holdfast.cli.render.why import render_why
from holdfast.cli.resolve import resolve_id
from holdfast.cli.values import SESSION
from holdfast.client.client import Client
from holdfast.client.events import stored_records
from holdfast.client.http import Json
from holdfast.client.lenient import convert
from holdfast.schemas.gateway import Why
from holdfast.schemas.tasks import TaskView

NOTHING = "Nothing is running, and nothing waits for you."


@verb()
@click.argument("id", type=SESSION, required=False)
@click.option(
    "--verbose", "-v", is_flag=True, help="Add all details: what postpones a reset, processes, evidence and times."
)
def why(cli: Cli, id: str | None, verbose: bool) -> None:
    """Show what a session, a task or a card is doing or waiting for, for how long, at whose request, and how it ended.

    Below each sentence is the event behind it. Without an ID: everything that is running or waiting.
    """
    if id is None:
        if verbose:
            raise CliError("--verbose needs an ID.", hint="`holdfast why` lists what is running.", code=USAGE)
        cli.show(cli.client.get("/v1/why"), Why, lambda found: render_why(found) or NOTHING)
        return
    found = _fetch(cli.client, resolve_id(cli.client, id), verbose=verbose)
    if cli.json:
        cli.print_json(found)
    else:
        cli.echo("\n\n".join(_blocks(found)))


def _blocks(found: Json) -> list[str]:
    blocks = [render_why(convert(found, Why)) or "Nothing has happened here yet."]
    if "reset" in found:
        from holdfast.domain.events.chapter import ChapterOpened
        from holdfast.schemas.chapters import ResetOutlook

        opened = convert(found["opened"], ChapterOpened) if found["opened"] is not None else None
        blocks.append(all_reset_details(convert(found["reset"], ResetOutlook), opened))
    if "task" in found:
        blocks.append(task_details(convert(found["task"], TaskView)))
    return blocks


def _fetch(client: Client, subject: dict[str, str], *, verbose: bool) -> Json:
    """Return the sentences about a card, a session or a task; of both when the task is the work of the session."""
    responses = [client.get(f"/v1/{noun}s/{id}/why") for noun, id in subject.items()]
    found: Json = responses[0] | {"sentences": [one for response in responses for one in response["sentences"]]}
    session, task = subject.get("session"), subject.get("task")
    if verbose and session:
        found["reset"] = client.get(f"/v1/sessions/{session}/reset")
        version = found["reset"]["chapter"]["version"]
        opened = stored_records(client, session, after=version - 1, page=1) if version else iter(())
        found["opened"] = next((item.event for item in opened), None)
    if verbose and task:
        found["task"] = client.get(f"/v1/tasks/{task}")
    return found
