"""What becomes of what still runs when a session ends a chapter, is archived or deleted: asked, never guessed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from holdfast.cli.chapters import RUNNING, outlook, running_cells
from holdfast.cli.context import Cli
from holdfast.cli.errors import CONFLICT, FAILED, CliError
from holdfast.cli.hints import with_home
from holdfast.cli.screen import SHORT_ID, age, dim, one_line, table
from holdfast.client.http import Json
from holdfast.client.sessions import WhatRuns
from holdfast.schemas.sessions import SessionView

F = TypeVar("F", bound=Callable[..., Any])
AT_WORK = ("running", "waiting", "suspended", "queued")
MEANINGS = {"k": "keep", "keep": "keep", "s": "stop", "stop": "stop", "c": "cancel", "cancel": "cancel"}
QUESTION = "k keep them running, s stop them, c cancel"
AGENTS = "agents go on either way; `holdfast tasks stop ID` ends one"


def running_option(function: F) -> F:
    """`--running keep|stop`."""
    option = click.option(
        "--running", type=click.Choice(["keep", "stop"]), help="What becomes of its commands that still run."
    )
    return option(function)


def choose(cli: Cli, row: SessionView, running: WhatRuns | None, *, ask: bool = True) -> WhatRuns | None:
    """What becomes of what still runs, when there is a choice to make. Nobody is asked in vain."""
    if row.state in AT_WORK:
        raise CliError(f"It is still at work ({row.state}).", hint=f"`holdfast stop {row.id}` first.", code=CONFLICT)
    tasks = [] if running is not None else outlook(cli.client, row.id)["running"]
    if running is not None or not tasks:
        return running
    if not ask or not sys.stdin.isatty():
        why = "--yes does not choose for you: " if not ask else ""
        listed = "; ".join(_named(one) for one in tasks)
        raise CliError(
            f"{len(tasks)} still running in the background: {listed}.",
            hint=f"{why}say what becomes of them with --running keep or --running stop.",
            code=CONFLICT,
        )
    click.echo(table(RUNNING, running_cells(tasks)), err=True)
    if any(one["kind"] != "process" for one in tasks):
        click.echo(dim(with_home(AGENTS)), err=True)
    return _asked()


def _asked() -> WhatRuns:
    while True:
        said = str(click.prompt(f"Still running: {QUESTION}", prompt_suffix=" ", err=True)).strip().lower()
        match MEANINGS.get(said):
            case "cancel":
                raise CliError("Nothing was changed.", code=FAILED)
            case "keep":
                return "keep"
            case "stop":
                return "stop"
            case _:
                click.echo("k, s or c?", err=True)


def _named(one: Json) -> str:
    return f"{one['task'][:SHORT_ID]} {one_line(one['title'])} ({one['activity'] or 'an agent'}, {age(one['age_ms'])})"
