"""`holdfast run`: a new session, one turn, the answer."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.conversation import say, tell_answer, tell_task
from holdfast.cli.unquoted import TextCommand
from holdfast.cli.values import TEXT, patience_option
from holdfast.client.http import Json


@click.command("run", cls=TextCommand)
@click.argument("prompt", type=TEXT)
@click.option("--profile", metavar="NAME", help="Which agent; by default the one in the settings.")
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Where it works; by default here.",
)
@click.option("--detach", is_flag=True, help="Make it a task: print the id of its session and leave; the work goes on.")
@patience_option
@shared_options
@pass_cli
def command(cli: Cli, prompt: str, profile: str | None, cwd: str | None, detach: bool, patience: float) -> int:
    """Begin a session with PROMPT and print the answer. `-` reads it from standard input.

    Starts a gateway in the background when none runs. Ctrl-C detaches: the work goes on.
    """
    body: Json = {"cwd": cwd or str(Path.cwd())}
    if profile is not None:
        body["profile"] = profile
    if detach:
        tell_task(cli, say(cli, "/v1/tasks/agents", body | {"prompt": prompt}))
        return 0
    return tell_answer(cli, say(cli, "/v1/sessions", body | {"text": prompt}), patience=patience)
