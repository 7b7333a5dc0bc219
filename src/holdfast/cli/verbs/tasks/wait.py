"""`holdfast tasks wait`."""

from __future__ import annotations

import sys

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import FAILED, INTERRUPTED, TIMED_OUT
from holdfast.cli.hints import program
from holdfast.cli.tasks import in_words
from holdfast.cli.values import SPAN, TASK, patience_option
from holdfast.client.http import Json, quote
from holdfast.client.lenient import convert
from holdfast.client.output import wait_for_task
from holdfast.client.reconnect import Disconnected, Reconnected
from holdfast.schemas.tasks import TaskView


@click.command("wait")
@click.argument("task", type=TASK)
@click.option("--timeout", type=SPAN, metavar="TIME", help="Wait no longer than this: 90s, 30m, 2h.")
@patience_option
@shared_options
@pass_cli
def command(cli: Cli, task: str, timeout: int | None, patience: float) -> int:
    """Wait until TASK has ended. The exit code is 0 if it is done, 1 if it failed, was stopped or is lost.

    It is 124 if TASK is still running after the --timeout.

    Ctrl-C stops waiting and nothing else. A gateway that goes away is waited for.
    """
    body: Json = cli.client.get(f"/v1/tasks/{quote(task)}")
    found = convert(body, TaskView)
    seconds = timeout / 1000 if timeout is not None else None
    if found.state == "running":
        print(f"waiting for {found.id}; Ctrl-C only stops waiting", file=sys.stderr, flush=True)
    try:
        for seen in wait_for_task(cli.client, found.id, seconds=seconds, patience=patience):
            match seen:
                case Disconnected():
                    print(f"the gateway is away; waiting for it up to {seen.seconds:.0f} s", file=sys.stderr)
                case Reconnected():
                    print("the gateway is back", file=sys.stderr)
                case _:
                    body, found = seen, convert(seen, TaskView)
    except KeyboardInterrupt:
        print(f"\nit goes on: {program()} tasks show {found.id}", file=sys.stderr)
        return INTERRUPTED
    _tell(cli, body, found)
    if found.state == "running":
        return TIMED_OUT
    return 0 if found.state == "done" else FAILED


def _tell(cli: Cli, body: Json, task: TaskView) -> None:
    if cli.json:
        cli.print_json(body)
    elif task.state == "running":
        click.echo(f"{task.id}: still {in_words(task)}")
    else:
        click.echo(f"{task.id}: {in_words(task)}")
