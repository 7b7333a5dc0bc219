"""`holdfast start`: run a command in the background."""

from __future__ import annotations

import re
from pathlib import Path

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.groups import CommandCommand, verb
from holdfast.cli.values import SESSION, UNTIL, start_options
from holdfast.client.http import Json
from holdfast.schemas.tasks import TaskAccepted

SHELL_HINT = "Several words are a program and its arguments; a shell command line is one word: 'cd docs && make'."
PLAIN = re.compile(r"[\w./+@%:,-]+\Z")
"""A word that means the same to a shell and without one."""


@verb(cls=CommandCommand)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD…")
@click.option("--name", metavar="N", help="Title of the task; by default the command.")
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Directory to run it in; by default the current one.",
)
@click.option(
    "--lifetime",
    type=click.Choice(["persist", "session", "chapter"]),
    help="How long it may run: without limit (persist, the default), or no longer than --session or its chapter.",
)
@click.option("--until", type=UNTIL, metavar="TIME", help='Stop it then: 2h, 7d, or a date like "2026-11-30 18:00".')
@click.option("--session", type=SESSION, metavar="ID", help="Notify this session when it ends.")
@click.option("--stdin", is_flag=True, help="Keep its input open, for `holdfast tasks write`.")
@start_options
def start(
    cli: Cli, /, words: tuple[str, ...], cwd: str | None, lifetime: str | None, until: int | None, **options: object
) -> None:
    """Run a command that outlives this terminal and the gateway, in this directory and with this environment.

    Several words are a program and its arguments. A single word in quotes is a command line for the shell:
    holdfast start -- 'make && make test'. Prints the ID of the task. Starts a gateway if none is running.
    """
    if not words or not words[0].strip():
        raise CliError("The command is missing.", hint="For example: holdfast start -- sleep 60", code=USAGE)
    if until is not None and lifetime is not None:
        raise CliError("--until and --lifetime cannot be combined.", hint="Use one of them.", code=USAGE)
    if lifetime in ("session", "chapter") and not options["session"]:
        raise CliError(f"--lifetime {lifetime} needs a session.", hint="Add --session ID.", code=USAGE)
    body: Json = {"shell": words[0]} if len(words) == 1 and not PLAIN.match(words[0]) else {"argv": list(words)}
    body |= {"lifetime": "until" if until is not None else lifetime or "persist", "until": until} | options
    body |= {"cwd": cwd or str(Path.cwd()), "env": None if options["node"] else cli.environment()}
    accepted = cli.send_command(TaskAccepted, "/v1/tasks", **body)
    task = accepted.task
    cli.result(task, task=task, version=accepted.version, seq=accepted.seq)
    found = cli.client.tasks.get(task)
    if found.state == "failed" and found.pid is None:
        raise CliError(f"{found.reason.removeprefix('never started: ')}.", hint=found.evidence or SHELL_HINT)
    cli.hint(f"its output:  holdfast tasks log {task} --follow")
    cli.hint(f"wait for it: holdfast tasks wait {task}")
    cli.hint(f"stop it:     holdfast tasks stop {task}")
