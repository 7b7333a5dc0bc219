"""`holdfast send`: say something in a session."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.conversation import say, tell_accepted, tell_answer
from holdfast.cli.naming import worker_of
from holdfast.cli.unquoted import TextCommand
from holdfast.cli.values import SESSION, TEXT, patience_option
from holdfast.client.errors import ApiError
from holdfast.client.http import Json, quote


@click.command("send", cls=TextCommand)
@click.argument("session", type=SESSION)
@click.argument("text", type=TEXT)
@click.option(
    "--mode",
    type=click.Choice(["queue", "steer", "interrupt"]),
    default="queue",
    show_default=True,
    help="While a turn runs: wait for its end, join it between two steps, or stop it.",
)
@click.option("--wait", is_flag=True, help="Wait for the answer and print it, like `run`.")
@patience_option
@shared_options
@pass_cli
def command(cli: Cli, session: str, text: str, mode: str, wait: bool, patience: float) -> int:
    """Say TEXT in SESSION, or to the agent of a task. `-` reads it from standard input.

    Starts a gateway in the background when none runs. With --wait, Ctrl-C detaches: the work goes on.
    """
    accepted = _say(cli, session, {"text": text, "mode": mode})
    if wait:
        return tell_answer(cli, accepted, patience=patience)
    tell_accepted(cli, accepted)
    return 0


def _say(cli: Cli, id: str, body: Json) -> Json:
    """To the session; if there is none of that id, to the one that works on the task."""
    try:
        return say(cli, f"/v1/sessions/{quote(id)}/messages", body)
    except ApiError as error:
        if not error.is_not_found:
            raise
        return say(cli, f"/v1/sessions/{worker_of(cli.client, id, error)}/messages", body)
