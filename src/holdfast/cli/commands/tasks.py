"""`holdfast tasks`: background tasks, running and ended."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import CONFLICT, FAILED, INTERRUPTED, TIMED_OUT, USAGE, CliError
from holdfast.cli.groups import NounGroup, TextCommand
from holdfast.cli.hints import program
from holdfast.cli.render import tasks as render
from holdfast.cli.render.output import OutputPrinter, print_matches
from holdfast.cli.screen import SHORT_ID, plural
from holdfast.cli.values import (
    SESSION,
    SINCE,
    SIZE,
    SPAN,
    TASK,
    TEXT,
    TYPED_LINE,
    Number,
    before_option,
    kind_option,
    limit_option,
    patience_option,
)
from holdfast.client.client import Client
from holdfast.client.http import Json, quote
from holdfast.client.lenient import convert
from holdfast.client.output import OutputItem, OutputPiece, follow_output, stored_output, wait_for_task
from holdfast.client.reconnect import Disconnected, Reconnected
from holdfast.schemas.tasks import OutputHits, PruneResult, TaskAccepted, TaskPage, TaskView

PAGE = 500
ENDED = ("done", "failed", "stopped", "lost")
END_SECONDS = 12
"""A command that is asked to end gets 5 s; then it is ended by force, which takes a moment too."""
WEEK = 7 * 86_400_000


@click.group(cls=NounGroup, default="list")
def tasks() -> None:
    """Show, wait for, stop and prune background tasks (commands and agents). Without a verb: list what is running."""


# --- look -----------------------------------------------------------------------------------------


@tasks.verb("Show", "list")
@kind_option
@click.option("--all", "everything", is_flag=True, help="Also commands that a turn waits for.")
def list_running(cli: Cli, kind: str | None, everything: bool) -> None:
    """List what is running now, across all sessions. Shows what each task is doing, and for how long."""
    rows: list[Json] = []
    before: str | None = ""
    while before is not None:
        query = {"state": "running", "kind": kind, "all": everything, "limit": PAGE, "before": before or None}
        page = cli.client.get("/v1/tasks", **query)
        rows += page["tasks"]
        before = page["next"]
    if cli.json:
        cli.print_json({"tasks": rows})
    elif rows:
        cli.echo(render.running_table(convert(rows, list[TaskView])))
    elif kind is not None:
        cli.echo(f"No {kind} is running in the background. Earlier ones: {program()} tasks history --kind {kind}")
    else:
        cli.echo(f"Nothing is running in the background. Try: {program()} start -- sleep 60")
        cli.hint("earlier tasks: holdfast tasks history")


@tasks.verb("Show")
@kind_option
@click.option("--session", type=SESSION, metavar="ID", help="Only tasks that this session started.")
@click.option("--since", type=SINCE, metavar="TIME", help="Only tasks started since then: 2h, 7d, or a date.")
@click.option("--state", type=click.Choice(["running", *ENDED]), help="Only tasks in this state.")
@click.option("--search", metavar="TEXT", help="Only tasks with TEXT in the title, the command or the summary.")
@limit_option
@before_option
@click.option("--all", "everything", is_flag=True, help="Also commands that a turn waited for.")
def history(cli: Cli, /, everything: bool, search: str | None, before: str | None, **filters: object) -> None:
    """List everything that ever ran, newest first. A task stays in this list until you prune it."""

    def text(page: TaskPage) -> str:
        if page.tasks:
            return render.ended_table(page.tasks)
        if before:
            return "No more tasks."
        if search or any(value is not None for name, value in filters.items() if name != "limit"):
            more = "" if everything else "; --all includes commands that a turn waited for"
            return f"No task matches{more}. `{program()} tasks search TEXT` searches their output."
        return f"No tasks yet. Try: {program()} start -- sleep 60"

    body = cli.client.get("/v1/tasks", text=search, all=everything, before=before, **filters)
    if cursor := cli.show(body, TaskPage, text).next:
        cli.hint(f"more: repeat the command with --before {cursor}")


@tasks.verb("Show")
@click.argument("task", type=TASK)
def show(cli: Cli, task: str) -> None:
    """Show all details of TASK. Who started it, what it is doing or how it ended, and how Holdfast knows that."""
    cli.show(cli.client.get(f"/v1/tasks/{quote(task)}"), TaskView, render.task_details)


@tasks.verb("Show")
@click.argument("task", type=TASK)
@click.option("--follow", "-f", "stay", is_flag=True, help="Keep printing until it has ended; Ctrl-C stops watching.")
@click.option("--tail", "-n", type=Number(1, 100_000), metavar="N", help="Only the last N lines.")
@click.option("--since", type=Number(min=0), metavar="OFFSET", help="Only output after the first OFFSET bytes.")
@click.option("--raw", is_flag=True, help="Print the bytes unchanged, with escape sequences.")
@click.option("--grep", "text", type=TEXT, metavar="TEXT", help="Only lines with TEXT, in upper or lower case.")
@patience_option
def log(
    cli: Cli, task: str, stay: bool, tail: int | None, since: int | None, raw: bool, text: str | None, patience: float
) -> int:
    """Print the output of TASK, also after it has ended. For an agent: its last message.

    Where bytes of a very long output were dropped, it says so. With --json: one piece of the output per line.

    --grep prints each line with TEXT after its offset; a long line is shortened around TEXT. The exit code is 1 if
    there is none.
    """
    if text is not None:
        if stay or tail is not None or raw:
            raise CliError(
                "--grep cannot be combined with these options.",
                hint="Leave out --follow, --tail and --raw.",
                code=USAGE,
            )
        return print_matches(cli, cli.client.tasks.get(task).id, text, offset=since or 0)
    if tail is not None and since is not None:
        raise CliError("--tail and --since cannot be combined.", hint="Use one of them.", code=USAGE)
    if raw and cli.json:
        raise CliError("--raw and --json cannot be combined.", hint="Use one of them.", code=USAGE)
    id, offset, lines = cli.client.tasks.get(task).id, since or 0, tail or 0
    items: Iterator[OutputItem] = stored_output(cli.client, id, raw=raw, offset=offset, tail=lines)
    if stay:
        items = follow_output(cli.client, id, raw=raw, offset=offset, tail=lines, patience=patience)
    printer = OutputPrinter(cli, task=id, raw=raw)
    try:
        for item in items:
            if isinstance(item, OutputPiece):
                printer.show(item)
            else:
                cli.note(str(item))
    except KeyboardInterrupt:
        cli.note("")
        return 0
    if not cli.json:
        printer.end(cli.client.tasks.get(id))
    return 0


@tasks.verb("Show")
@click.argument("task", type=TASK)
@click.option("--timeout", type=SPAN, metavar="TIME", help="Wait no longer than this: 90s, 30m, 2h.")
@patience_option
def wait(cli: Cli, task: str, timeout: int | None, patience: float) -> int:
    """Wait until TASK has ended. The exit code is 0 if it is done, 1 if it failed, was stopped or is lost.

    It is 124 if TASK has not ended after the --timeout. Ctrl-C only ends the waiting, not TASK.
    """
    found = cli.client.tasks.get(task)
    seconds = timeout / 1000 if timeout is not None else None
    if found.is_open:
        cli.note(f"waiting for {found.id}; Ctrl-C ends the waiting, not the task")
    body: Json = {}
    try:
        for item in wait_for_task(cli.client, found.id, seconds=seconds, patience=patience):
            if isinstance(item, Disconnected | Reconnected):
                cli.note(str(item))
            else:
                body = item
    except KeyboardInterrupt:
        cli.note(f"\nit keeps running: {program()} tasks show {found.id}")
        return INTERRUPTED

    def text(task: TaskView) -> str:
        return f"{task.id}: {'still ' if task.is_open else ''}{render.describe_task(task)}"

    return {"done": 0, "running": TIMED_OUT, "unknown": TIMED_OUT}.get(cli.show(body, TaskView, text).state, FAILED)


@tasks.verb("Show", cls=TextCommand)
@click.argument("text", type=TEXT)
@limit_option
def search(cli: Cli, text: str, limit: int) -> None:
    """Search the output of all tasks for TEXT, newest first. Long outputs: only the beginning and the end."""
    if cli.show(cli.client.get("/v1/tasks/search", q=text, limit=limit), OutputHits, render.hits_table).hits:
        cli.hint("read one: holdfast tasks log ID")


@tasks.verb("Show")
@click.option("--stop", is_flag=True, help="Stop them, after asking; forced after 5 s.")
@click.option("--yes", is_flag=True, help="With --stop: do not ask for confirmation.")
def stale(cli: Cli, stop: bool, yes: bool) -> None:
    """List running commands that nobody seems to need; --stop ends them.

    Each is listed with the reason. Commands that are working, in use, pinned or started by a person are never
    listed. Without --stop nothing ends.
    """
    if yes and not stop:
        raise CliError("--yes needs --stop.", hint="Run `holdfast tasks stale --stop --yes`.", code=USAGE)
    body = cli.client.get("/v1/tasks/stale")
    found = convert(body, TaskPage).tasks
    if not cli.json:
        cli.echo(render.stale_table(found) if found else render.NOTHING_STALE)
    elif not stop:
        cli.print_json({"tasks": body["tasks"]})
    if stop:
        _stop_stale(cli, found, yes=yes)
    elif found:
        cli.hint(
            "end all: holdfast tasks stale --stop · end one: holdfast tasks stop ID · keep one: holdfast tasks pin ID"
        )


def _stop_stale(cli: Cli, found: list[TaskView], *, yes: bool) -> None:
    if found:
        cli.confirm(f"Stop {plural(len(found), 'command')}?", yes=yes, declined="Nothing was stopped.")
    still = {task.id for task in cli.client.tasks.stale().tasks}  # somebody may have taken long to answer
    for task in (stopping := [task for task in found if task.id in still]):
        cli.client.tasks.stop(task.id)
    after = {task.id: cli.client.tasks.wait(task.id, seconds=END_SECONDS) for task in stopping}
    if cli.json:
        keys = ("id", "state", "reason", "survivors")
        cli.print_json({"stopped": [{key: getattr(task, key) for key in keys} for task in after.values()]})
    else:
        for task in found:
            left_alone = "is no longer stale, so it was not stopped"
            result = render.describe_result(after[task.id]) if task.id in after else left_alone
            cli.echo(f"{task.id[:SHORT_ID]}: {result}")
    if any(task.state == "running" for task in after.values()):
        hint = "`holdfast tasks kill ID` ends one by force."
        raise CliError("Some are still running.", hint=hint, code=CONFLICT)


# --- change ---------------------------------------------------------------------------------------


@tasks.verb("Change")
@click.argument("task", type=TASK)
def stop(cli: Cli, task: str) -> None:
    """Stop TASK and everything that it started; forced after 5 s. Prints how it ended."""
    _stop(cli, task, force=False)


@tasks.verb("Change")
@click.argument("task", type=TASK)
def kill(cli: Cli, task: str) -> None:
    """Force TASK to end at once, with everything that it started. Prints how it ended, and any survivors."""
    _stop(cli, task, force=True)


@tasks.verb("Change")
@click.argument("task", type=TASK)
def rerun(cli: Cli, task: str) -> None:
    """Run an ended TASK again, on its node in the same directory. Prints the ID of the new task.

    A command gets the environment of this terminal, on another node that of its gateway. Its end notifies no session.
    """
    cli.start_gateway()
    accepted = cli.client.tasks.rerun(task, env=cli.environment())
    id = accepted.task
    cli.result(id, task=id, version=accepted.version, seq=accepted.seq)
    cli.hint(f"its output:  holdfast tasks log {id} --follow")


def _stop(cli: Cli, id: str, *, force: bool) -> None:
    cli.start_gateway()
    accepted, task = stop_task(cli.client, id, force=force)
    result = render.describe_result(task)
    cli.accepted(accepted, result, state=task.state, reason=task.reason, survivors=task.survivors)
    if task.is_open:
        is_away = task.state == "unknown"
        by_force = f"`holdfast tasks kill {task.id}` ends it by force."
        hint = f"See `holdfast why {task.id}`." if force or is_away else by_force
        raise CliError("Its node is away." if is_away else "It is still running.", hint=hint, code=CONFLICT)


def stop_task(client: Client, id: str, *, force: bool) -> tuple[TaskAccepted, TaskView]:
    """Ask it to end and wait a while for that: what was accepted, and the task as it is then."""
    accepted = client.tasks.stop(id, force=force)
    return accepted, client.tasks.wait(accepted.task, seconds=END_SECONDS)


@tasks.verb("Change")
@click.argument("task", type=TASK)
@click.argument("text", type=TYPED_LINE, required=False)
@click.option("--close", is_flag=True, help="Close its input afterwards (end of file).")
def write(cli: Cli, task: str, text: str | None, close: bool) -> None:
    """Type TEXT and Enter into a command. It must have been started with `holdfast start --stdin`.

    `-` sends standard input unchanged, without an Enter.
    """
    if text is None and not close:
        raise CliError("There is no TEXT to type.", hint="Add a TEXT, or --close to close its input.", code=USAGE)
    id = cli.client.tasks.get(task).id
    result = cli.client.tasks.write(id, text or "", close=close)
    taken, total = result.bytes, result.of
    if cli.json or taken == total:
        closed = ", its input is closed" if close else ""
        cli.result(f"{id}: {taken} bytes written{closed}", task=id, bytes=taken, of=total)
    if taken < total:
        raise CliError(
            f"Only {taken} of {total} bytes were written: the command does not read its input.",
            hint="Send the rest later." + (" Its input was not closed." if close else ""),
        )


@tasks.verb("Change")
@click.argument("task", type=TASK)
def pin(cli: Cli, task: str) -> None:
    """Protect TASK from pruning."""
    cli.accepted(cli.client.tasks.pin(task), "protected from pruning")


@tasks.verb("Change")
@click.argument("task", type=TASK)
def unpin(cli: Cli, task: str) -> None:
    """Remove the protection from pruning."""
    cli.accepted(cli.client.tasks.pin(task, pinned=False), "no longer protected from pruning")


@tasks.verb("Change")
@click.option("--older-than", "older_than_ms", type=SPAN, metavar="TIME", help="Only if it ended over TIME ago: 7d.")
@click.option("--keep-last", type=Number(min=0), metavar="N", help="Keep the N tasks that ended last.")
@click.option("--state", type=click.Choice(ENDED), help="Only tasks that ended in this state.")
@click.option("--larger-than", type=SIZE, metavar="SIZE", help="Only tasks with more output than SIZE: 500k, 20M, 1G.")
@click.option("--yes", is_flag=True, help="Delete them for good.")
def prune(cli: Cli, /, yes: bool, **conditions: object) -> None:
    """Show which ended tasks would be deleted; --yes deletes them.

    Their output is deleted too. Without options: --older-than 7d. Several options together delete only tasks that
    match all of them. Running and pinned tasks always stay.
    """
    given = {name: value for name, value in conditions.items() if value is not None}
    text = partial(render.prune_result, rule="" if given else " (ended more than 7 days ago)")
    body = (given or {"older_than_ms": WEEK}) | {"confirm": yes}
    result = cli.show(cli.client.command("POST", "/v1/tasks/prune", body), PruneResult, text)
    if result.count and not yes:
        cli.hint("delete them for good: repeat the command with --yes · keep one: holdfast tasks pin ID")
