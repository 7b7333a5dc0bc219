"""`holdfast chat`: a terminal to live in. Bare `holdfast` is the same."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from holdfast.cli.context import Cli, home_option, pass_cli
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.values import SESSION
from holdfast.config import environment


@click.command("chat")
@click.argument("session", type=SESSION, required=False)
@click.option("--new", is_flag=True, help="Begin a new session.")
@click.option("--profile", metavar="NAME", help="Begin a new session with this agent.")
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Where it works; by default here.",
)
@home_option
@pass_cli
def command(cli: Cli, session: str | None, new: bool, profile: str | None, cwd: str | None) -> int:
    """Talk to an agent: attach to SESSION, else to the last one of this directory, else begin one.

    Starts a gateway in the background when none runs. Ctrl-C stops the turn. Ctrl-D, or closing the
    terminal, detaches: the work goes on. /help shows what can be typed.
    """
    if session is not None and (new or profile is not None or cwd is not None):
        raise CliError(
            "An existing session has its agent and its directory already.",
            hint="leave SESSION out to begin one; /profile changes the agent of a session.",
            code=USAGE,
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CliError(
            "The chat needs a terminal on both sides.",
            hint='`holdfast run "…"` asks one thing and prints the answer; `holdfast --help` shows the rest.',
            code=USAGE,
        )
    if environment("TERM") in (None, "dumb"):
        raise CliError(
            "The chat needs a terminal that can move its cursor; this one says that it cannot (TERM).",
            hint='`holdfast run "…"` begins a session and prints the answer, `holdfast send ID "…" --wait` goes on.',
            code=USAGE,
        )
    from holdfast.cli.chat.main import run_chat

    return run_chat(cli, session=session, new=new or profile is not None, profile=profile, cwd=cwd or str(Path.cwd()))
