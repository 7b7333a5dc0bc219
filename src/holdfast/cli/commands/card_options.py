"""Options that several verbs of `holdfast card` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from holdfast.cli.render.cards import RESUME
from holdfast.cli.values import BODY, SOME_TIME, TEXT, WORKSPACE, Number, tell_option

F = TypeVar("F", bound=Callable[..., Any])
PRIORITY = 1000
node_option = click.option(
    "--node", metavar="NAME", help="The node on which it runs, or a label of such nodes; see `holdfast nodes`."
)


def card_options(function: F) -> F:
    """Options of `add` and `edit`, in the order in which --help shows them."""
    options = (
        click.option("--body", type=BODY, metavar="TEXT", help="The job for the agent; `-` reads standard input."),
        click.option("--profile", metavar="NAME", help="The profile (agent) that works on it."),
        click.option(
            "--workspace",
            type=WORKSPACE,
            metavar="WHERE",
            help="scratch (a new directory), dir:PATH, or worktree:REPO (a git worktree on a new branch).",
        ),
        node_option,
        click.option(
            "--priority",
            type=Number(-PRIORITY, PRIORITY),
            metavar="N",
            help="Cards with a higher priority start first; 0 by default.",
        ),
        click.option(
            "--resume",
            type=click.Choice(RESUME),
            help="Whether its next worker continues the session of the last one; by default as set for the profile.",
        ),
        click.option(
            "--max-runtime", "max_runtime_ms", type=SOME_TIME, metavar="TIME", help="How long a run may take."
        ),
        click.option(
            "--max-attempts",
            type=Number(1, 100),
            metavar="N",
            help="How often it is tried before it is blocked.",
        ),
        tell_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


def message_options(function: F) -> F:
    """A message to the worker: as TEXT or, equally, with -m; and --fresh."""
    text = click.argument("text", type=TEXT, metavar="[TEXT]", required=False)
    message = click.option(
        "--message", "-m", type=TEXT, metavar="TEXT", help="The same as TEXT; `-` reads standard input."
    )
    fresh = click.option("--fresh", is_flag=True, help="Start a new session, with a hand-over note.")
    return text(message(fresh(function)))
