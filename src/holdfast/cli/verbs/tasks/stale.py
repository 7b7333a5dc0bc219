"""`holdfast tasks stale`: what runs and is at no work that anybody waits for; --stop ends it."""

from __future__ import annotations

import sys

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.ending import PATIENCE_SECONDS, how_it_ended
from holdfast.cli.errors import CONFLICT, FAILED, USAGE, CliError
from holdfast.cli.hints import program
from holdfast.cli.screen import SHORT_ID, dim, plural
from holdfast.cli.tasks import NOTHING_STALE, stale_lines
from holdfast.client.lenient import convert
from holdfast.schemas.tasks import TaskPage, TaskView


@click.command("stale")
@click.option("--stop", is_flag=True, help="Ask them to end, after 5 s by force.")
@click.option("--yes", is_flag=True, help="With --stop: do not ask.")
@shared_options
@pass_cli
def command(cli: Cli, stop: bool, yes: bool) -> None:
    """List commands that run and are at no work that anybody waits for, each with the reason.

    What is at work, in use, pinned, or started by a person is never in this list. Nothing is ended without --stop.
    """
    if yes and not stop:
        raise CliError("--yes belongs to --stop.", hint="`holdfast tasks stale --stop --yes`", code=USAGE)
    body = cli.client.get("/v1/tasks/stale")
    if not stop and cli.json:
        cli.print_json({"tasks": body["tasks"]})
        return
    tasks = convert(body, TaskPage).tasks
    if not cli.json:
        click.echo("\n".join(stale_lines(tasks)) if tasks else NOTHING_STALE)
    if tasks and not stop:
        click.echo(
            dim(f"end them: {program()} tasks stale --stop · one: tasks stop ID · keep one: tasks pin ID"),
            err=True,
        )
    if stop:
        _end(cli, tasks, yes=yes)


def _end(cli: Cli, tasks: list[TaskView], *, yes: bool) -> None:
    if tasks and not yes:
        _confirm(f"Stop {plural(len(tasks), 'command')}?")
    still = {task.id for task in cli.client.tasks.stale().tasks}  # the question may have stood there for long
    ended = [task for task in tasks if task.id in still]
    for task in ended:
        cli.client.tasks.stop(task.id)
    after = [cli.client.tasks.wait(task.id, seconds=PATIENCE_SECONDS) for task in ended]
    if cli.json:
        keys = ("id", "state", "reason", "survivors")
        cli.print_json({"stopped": [{key: getattr(task, key) for key in keys} for task in after]})
    else:
        for task in tasks:
            now = next((one for one in after if one.id == task.id), None)
            words = how_it_ended(now) if now is not None else "is not stale any more, and was left alone"
            click.echo(f"{task.id[:SHORT_ID]}: {words}")
    if any(task.state == "running" for task in after):
        raise CliError(
            "Not all of them have ended yet.", hint="`holdfast tasks kill ID` ends one at once.", code=CONFLICT
        )


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise CliError(question, hint="nobody can be asked here: repeat it with --yes.", code=USAGE)
    if not click.confirm(question, err=True):
        raise CliError("Nothing was stopped.", code=FAILED)
