"""`holdfast send`: say something in a session."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.conversation import patience_option, say, tell_accepted, tell_answer
from holdfast.cli.gateway import quote
from holdfast.cli.values import SESSION, TEXT


@click.command("send")
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
    """Say TEXT in SESSION. `-` reads it from standard input.

    Starts a gateway in the background when none runs. With --wait, Ctrl-C detaches: the work goes on.
    """
    accepted = say(cli, f"/v1/sessions/{quote(session)}/messages", {"text": text, "mode": mode})
    if wait:
        return tell_answer(cli, accepted, patience=patience)
    tell_accepted(cli, accepted)
    return 0
