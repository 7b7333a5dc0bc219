"""`holdfast tasks` and `holdfast start`: what runs in the background, and the archive of all that ever did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from holdfast.cli.context import Cli
from holdfast.cli.errors import CONFLICT, FAILED, INTERRUPTED, TIMED_OUT, USAGE, CliError
from holdfast.cli.groups import CommandCommand, NounGroup, TextCommand, verb
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
    UNTIL,
    before_option,
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
PLAIN = re.compile(r"[\w./+@%:,-]+\Z")
"""A word that means the same to a shell and without one."""
kind_option = click.option(
    "--kind", type=click.Choice(["process", "agent", "card"]), help="Only commands, agents, or runs of cards."
)


@click.group(cls=NounGroup, default="list")
def tasks() -> None:
    """List, read, wait for, stop and prune what runs or ran in the background. Without a verb: what runs now."""


# --- look -----------------------------------------------------------------------------------------


@tasks.verb("Look", "list")
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
        cli.echo(f"No {kind} runs in the background. What ran before: {program()} tasks history --kind {kind}")
    else:
        cli.echo(f"Nothing runs in the background. Try: {program()} start -- sleep 60")
        cli.hint("what ran before: holdfast tasks history")


@tasks.verb("Look")
@kind_option
@click.option("--session", type=SESSION, metavar="ID", help="Only what this session started.")
@click.option("--since", type=SINCE, metavar="TIME", help="Only what started after this: 2h, 7d, or a date.")
@click.option("--state", type=click.Choice(["running", *ENDED]), help="Only what is in this state.")
@click.option("--search", metavar="TEXT", help="Only with this in the title, the command or the summary.")
@limit_option
@before_option
@click.option("--all", "everything", is_flag=True, help="Also commands that a turn waited for.")
def history(cli: Cli, /, everything: bool, search: str | None, before: str | None, **filters: object) -> None:
    """List everything that ever ran, newest first. Nothing leaves this list until it is pruned."""

    def text(page: TaskPage) -> str:
        if page.tasks:
            return render.ended_table(page.tasks)
        if before:
            return "No more tasks."
        if search or any(value is not None for name, value in filters.items() if name != "limit"):
            more = "" if everything else "; --all also looks at commands that a turn waited for"
            return f"No task fits{more}. `{program()} tasks search TEXT` looks into their output."
        return f"No tasks yet. Try: {program()} start -- sleep 60"

    body = cli.client.get("/v1/tasks", text=search, all=everything, before=before, **filters)
    if cursor := cli.show(body, TaskPage, text).next:
        cli.hint(f"more: the same with --before {cursor}")


@tasks.verb("Look")
@click.argument("task", type=TASK)
def show(cli: Cli, task: str) -> None:
    """Show all details of TASK. Who started it, how it is doing or how it ended, and how that is known."""
    cli.show(cli.client.get(f"/v1/tasks/{quote(task)}"), TaskView, render.task_details)


@tasks.verb("Look")
@click.argument("task", type=TASK)
@click.option("--follow", "-f", "stay", is_flag=True, help="Stay until it has ended; Ctrl-C leaves.")
@click.option("--tail", "-n", type=click.IntRange(1, 100_000), metavar="N", help="Only the last N lines.")
@click.option("--since", type=click.IntRange(min=0), metavar="OFFSET", help="Only what comes after so many bytes.")
@click.option("--raw", is_flag=True, help="The bytes as they were written, with escape sequences.")
@click.option("--grep", "text", type=TEXT, metavar="TEXT", help="Only the lines with TEXT, in either case.")
@patience_option
def log(
    cli: Cli, task: str, stay: bool, tail: int | None, since: int | None, raw: bool, text: str | None, patience: float
) -> int:
    """Print the output of TASK; --follow stays with it. The output is kept after TASK has ended.

    It says where bytes were dropped. For an agent it is what it said last. With --json one piece of the output a line.

    --grep prints each line with TEXT after its offset; a long line is shortened around TEXT. The exit code is 1 if
    there is none.
    """
    if text is not None:
        if stay or tail is not None or raw:
            raise CliError("--grep searches what there is.", hint="Leave out --follow, --tail and --raw.", code=USAGE)
        return print_matches(cli, cli.client.tasks.get(task).id, text, offset=since or 0)
    if tail is not None and since is not None:
        raise CliError("--tail and --since exclude each other.", hint="Give one of them.", code=USAGE)
    if raw and cli.json:
        raise CliError("--raw writes bytes, which --json cannot carry.", hint="Give one of them.", code=USAGE)
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


@tasks.verb("Look")
@click.argument("task", type=TASK)
@click.option("--timeout", type=SPAN, metavar="TIME", help="Wait no longer than this: 90s, 30m, 2h.")
@patience_option
def wait(cli: Cli, task: str, timeout: int | None, patience: float) -> int:
    """Wait until TASK has ended. The exit code is 0 if it is done, 1 if it failed, was stopped or is lost.

    It is 124 if TASK is still running after the --timeout.

    Ctrl-C stops waiting and nothing else. A gateway that goes away is waited for.
    """
    found = cli.client.tasks.get(task)
    seconds = timeout / 1000 if timeout is not None else None
    if found.state == "running":
        cli.note(f"waiting for {found.id}; Ctrl-C only stops waiting")
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
        return f"{task.id}: {'still ' if task.state == 'running' else ''}{render.describe_task(task)}"

    return {"done": 0, "running": TIMED_OUT}.get(cli.show(body, TaskView, text).state, FAILED)


@tasks.verb("Look", cls=TextCommand)
@click.argument("text", type=TEXT)
@limit_option
def search(cli: Cli, text: str, limit: int) -> None:
    """Find TEXT in the output of all tasks, newest first. Of a long output only its beginning and its end."""
    if cli.show(cli.client.get("/v1/tasks/search", q=text, limit=limit), OutputHits, render.hits_table).hits:
        cli.hint("read one: holdfast tasks log ID")


@tasks.verb("Look")
@click.option("--stop", is_flag=True, help="Ask them to end, after 5 s by force.")
@click.option("--yes", is_flag=True, help="With --stop: do not ask.")
def stale(cli: Cli, stop: bool, yes: bool) -> None:
    """List running commands that nobody seems to need; --stop ends them. Each is listed with the reason.

    What is at work, in use, pinned, or started by a person is never in this list. Nothing is ended without --stop.
    """
    if yes and not stop:
        raise CliError("--yes belongs to --stop.", hint="`holdfast tasks stale --stop --yes`", code=USAGE)
    body = cli.client.get("/v1/tasks/stale")
    found = convert(body, TaskPage).tasks
    if not cli.json:
        cli.echo(render.stale_table(found) if found else render.NOTHING_STALE)
    elif not stop:
        cli.print_json({"tasks": body["tasks"]})
    if stop:
        _stop_stale(cli, found, yes=yes)
    elif found:
        cli.hint("end them: holdfast tasks stale --stop · one: tasks stop ID · keep one: tasks pin ID")


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
            left_alone = "is not stale any more, and was left alone"
            result = render.describe_result(after[task.id]) if task.id in after else left_alone
            cli.echo(f"{task.id[:SHORT_ID]}: {result}")
    if any(task.state == "running" for task in after.values()):
        hint = "`holdfast tasks kill ID` ends one at once."
        raise CliError("Not all of them have ended yet.", hint=hint, code=CONFLICT)


# --- change ---------------------------------------------------------------------------------------


@tasks.verb("Change")
@click.argument("task", type=TASK)
def stop(cli: Cli, task: str) -> None:
    """Ask TASK to end, and end it by force after 5 s. Prints how it ended."""
    _stop(cli, task, force=False)


@tasks.verb("Change")
@click.argument("task", type=TASK)
def kill(cli: Cli, task: str) -> None:
    """End TASK at once, with everything that it started. Prints how it ended, and which of its processes still live."""
    _stop(cli, task, force=True)


@tasks.verb("Change")
@click.argument("task", type=TASK)
def rerun(cli: Cli, task: str) -> None:
    """Run an ended TASK again: the same command or prompt in the same directory. Prints the id of the new task.

    A command gets this environment. No session is notified of its end.
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
    if task.state == "running":
        next_step = (
            f"`holdfast why {task.id}` says more." if force else f"`holdfast tasks kill {task.id}` ends it at once."
        )
        raise CliError("It has not ended yet.", hint=next_step, code=CONFLICT)


def stop_task(client: Client, id: str, *, force: bool) -> tuple[TaskAccepted, TaskView]:
    """Ask it to end and wait a while for that: what was accepted, and the task as it is then."""
    accepted = client.tasks.stop(id, force=force)
    return accepted, client.tasks.wait(accepted.task, seconds=END_SECONDS)


@tasks.verb("Change")
@click.argument("task", type=TASK)
@click.argument("text", type=TYPED_LINE, required=False)
@click.option("--close", is_flag=True, help="Then close its input: it reads an end of file.")
def write(cli: Cli, task: str, text: str | None, close: bool) -> None:
    """Type TEXT and Enter into TASK, if its input is open. `holdfast start --stdin` keeps it open.

    `-` types standard input as it is.
    """
    if text is None and not close:
        raise CliError("There is nothing to type.", hint="Give a TEXT, or --close to end its input.", code=USAGE)
    id = cli.client.tasks.get(task).id
    result = cli.client.tasks.write(id, text or "", close=close)
    taken, total = result.bytes, result.of
    if cli.json or taken == total:
        closed = ", its input is closed" if close else ""
        cli.result(f"{id}: took {taken} bytes{closed}", task=id, bytes=taken, of=total)
    if taken < total:
        raise CliError(
            f"It took {taken} of {total} bytes: it does not read its input.",
            hint="Type the rest when it does." + (" Its input was not closed." if close else ""),
        )


@tasks.verb("Change")
@click.argument("task", type=TASK)
def pin(cli: Cli, task: str) -> None:
    """Protect TASK from pruning."""
    cli.accepted(cli.client.tasks.pin(task), "protected from pruning")


@tasks.verb("Change")
@click.argument("task", type=TASK)
def unpin(cli: Cli, task: str) -> None:
    """Let TASK be pruned again."""
    cli.accepted(cli.client.tasks.pin(task, pinned=False), "may be pruned again")


@tasks.verb("Change")
@click.option("--older-than", "older_than_ms", type=SPAN, metavar="TIME", help="Only what ended longer ago: 2h, 7d.")
@click.option("--keep-last", type=click.IntRange(min=0), metavar="N", help="But not the last N that ended.")
@click.option("--state", type=click.Choice(ENDED), help="Only what ended like this.")
@click.option("--larger-than", type=SIZE, metavar="SIZE", help="Only with more output than this: 500k, 20M, 1G.")
@click.option("--yes", is_flag=True, help="Delete it, for good.")
def prune(cli: Cli, /, yes: bool, **conditions: object) -> None:
    """Show which ended tasks would be deleted; --yes deletes them. Their output is deleted with them.

    All conditions that are given must hold; without any it is --older-than 7d. What runs or is pinned always stays.
    """
    given = {name: value for name, value in conditions.items() if value is not None}
    text = partial(render.prune_result, rule="" if given else " (ended more than 7 days ago)")
    body = (given or {"older_than_ms": WEEK}) | {"confirm": yes}
    result = cli.show(cli.client.command("POST", "/v1/tasks/prune", body), PruneResult, text)
    if result.count and not yes:
        cli.hint("delete them, for good: the same with --yes; keep one: holdfast tasks pin ID")


# --- start ----------------------------------------------------------------------------------------


@verb(cls=CommandCommand)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD…")
@click.option("--name", metavar="N", help="Its title; by default the command.")
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Where it runs; by default here.",
)
@click.option(
    "--lifetime",
    type=click.Choice(["persist", "session", "chapter"]),
    help="How long it may live: until it ends (persist), or no longer than --session or its chapter.",
)
@click.option("--until", type=UNTIL, metavar="TIME", help="It may live until then: 2h, 7d, or a date and a time.")
@click.option("--session", type=SESSION, metavar="ID", help="The session that is notified when it ends.")
@click.option("--stdin", is_flag=True, help="Keep its input open for `holdfast tasks write`; else there is none.")
def start(
    cli: Cli, /, words: tuple[str, ...], cwd: str | None, lifetime: str | None, until: int | None, **options: object
) -> None:
    """Run a command that outlives this terminal and the gateway. It gets this environment; its whole output is kept.

    Several words are the command and its arguments, as they are. A single word is a text for the shell:
    holdfast start -- 'make && make test'. Starts a gateway in the background when none runs.
    """
    if not words or not words[0].strip():
        raise CliError("There is no command.", hint="holdfast start -- sleep 60", code=USAGE)
    if until is not None and lifetime is not None:
        raise CliError("--until is a lifetime of its own.", hint="Leave --lifetime out.", code=USAGE)
    if lifetime in ("session", "chapter") and not options["session"]:
        raise CliError(f"The lifetime {lifetime} is that of a session.", hint="Name it: --session ID.", code=USAGE)
    body: Json = {"shell": words[0]} if len(words) == 1 and not PLAIN.match(words[0]) else {"argv": list(words)}
    body |= {"cwd": cwd or str(Path.cwd()), "env": cli.environment(), "until": until} | options
    body["lifetime"] = "until" if until is not None else lifetime or "persist"
    accepted = cli.send_command(TaskAccepted, "/v1/tasks", **body)
    task = accepted.task
    cli.result(task, task=task, version=accepted.version, seq=accepted.seq)
    found = cli.client.tasks.get(task)
    if found.state == "failed" and found.pid is None:
        raise CliError(f"{found.reason}.", hint=found.evidence or f"`holdfast why {task}` says more.")
    cli.hint(f"its output:  holdfast tasks log {task} --follow")
    cli.hint(f"wait for it: holdfast tasks wait {task} · stop it: holdfast tasks stop {task}")
