"""The slash commands about tasks: the same tables and words as on the command line."""

from __future__ import annotations

import math

from holdfast.cli.chat.blocks import Block, ListingBlock, NoticeBlock
from holdfast.cli.chat.connection import SessionRef, begin
from holdfast.cli.chat.look import LISTED
from holdfast.cli.chat.view import View
from holdfast.cli.commands.tasks import stop_task
from holdfast.cli.hints import program
from holdfast.cli.render import tasks
from holdfast.cli.screen import SHORT_ID, clean, dim, one_line, plural, size, terminal_width, wrap
from holdfast.client.client import Client
from holdfast.client.lenient import convert
from holdfast.client.output import read_output, wait_for_task
from holdfast.client.reconnect import Disconnected, Reconnected
from holdfast.domain.errors import HoldfastError
from holdfast.schemas.chapters import RunningTaskView
from holdfast.schemas.tasks import TaskView

LOG_LINES = 40
WEEK = 7 * 86_400_000


def about_tasks(client: Client, words: str) -> list[Block]:
    """One of the verbs of /tasks."""
    verb, _, about = words.partition(" ")
    match verb:
        case "list":
            return _running(client)
        case "history":
            return _history(client)
        case "search":
            return _search(client, about)
        case "prune":
            return _prune(client, yes=bool(about))
        case _:
            return _about_one(client, verb, client.tasks.get(about))


def start(client: Client, ref: SessionRef, view: View, prompt: str) -> list[Block]:
    """Let an agent do it in the background. This session begins now if it has not begun, to be told of the end."""
    with ref.lock:
        if not ref.session:
            begin(client, ref)
    task = client.tasks.start_agent(prompt, session=ref.session, cwd=view.cwd, profile=view.profile or None).task
    return [
        NoticeBlock(
            f"task {task[:SHORT_ID]} is at work; this session is told of its end (/tasks show {task[:SHORT_ID]})"
        )
    ]


def going_on(client: Client, session: str) -> list[Block]:
    """What a stop of the turn does not end. Nothing when nobody can be asked: stopping does not depend on it."""
    try:
        found = client.tasks.list(state="running", session=session, limit=500).tasks
    except HoldfastError:
        return []
    return [
        NoticeBlock(f"goes on: {task.kind} {task.id[:SHORT_ID]} {one_line(task.title)} (/tasks stop ID)")
        for task in found
        if task.worker != session
    ]


def stale(client: Client) -> list[Block]:
    """What runs and nobody waits for."""
    found = client.tasks.stale().tasks
    if not found:
        return [NoticeBlock(tasks.NOTHING_STALE)]
    hint = f"/tasks stop ID ends one, /tasks pin ID keeps it; all of them: {program()} tasks stale --stop"
    return [ListingBlock([*tasks.stale_table(found).split("\n"), *map(dim, wrap(hint, terminal_width()))])]


def stop_commands(client: Client, found: list[RunningTaskView]) -> list[Block]:
    """Ask commands to end; they get their 5 s while somebody goes on talking."""
    commands = [task for task in found if task.kind == "process"]
    for task in commands:
        client.tasks.stop(task.task)
    named = ", ".join(f"{task.task[:SHORT_ID]} {one_line(task.title)}" for task in commands)
    return [NoticeBlock(f"asked to end: {named}")] if named else []


def _running(client: Client) -> list[Block]:
    found = client.tasks.list(state="running", limit=500).tasks
    if not found:
        return [
            NoticeBlock("Nothing runs in the background. /tasks history lists what ran; /bg PROMPT starts an agent.")
        ]
    return [listing(tasks.running_table(found), "/tasks log ID · show ID · stop ID · kill ID")]


def _history(client: Client) -> list[Block]:
    page = client.tasks.list(limit=LISTED)
    if not page.tasks:
        return [NoticeBlock("No tasks yet. /bg PROMPT starts an agent in the background.")]
    more = f"; more: {program()} tasks history" if page.next else ""
    return [listing(tasks.ended_table(page.tasks), f"/tasks log ID · show ID · pin ID{more}")]


def _search(client: Client, text: str) -> list[Block]:
    found = client.tasks.search(text, limit=LISTED)
    if not found.hits:
        return [NoticeBlock("Nothing found in the output of any task.")]
    return [listing(tasks.hits_table(found), "/tasks log ID reads one")]


def _prune(client: Client, *, yes: bool) -> list[Block]:
    told = client.tasks.prune(older_than_ms=WEEK, confirm=yes)
    if not told.count:
        return [
            NoticeBlock(f"No task ended more than 7 days ago; `{program()} tasks prune --help` has other conditions.")
        ]
    what = f"{plural(told.count, 'task')} that ended more than 7 days ago"
    if yes:
        return [NoticeBlock(f"deleted {what} and freed {size(told.bytes)}")]
    hint = f"would delete {what} and free {size(told.bytes)}; /tasks prune yes does it, /tasks pin ID keeps one"
    return [listing(tasks.ended_table(told.tasks[:LISTED]), hint)]


def listing(text: str, hint: str) -> ListingBlock:
    """A table, and below it what can be done with it."""
    return ListingBlock([*text.split("\n"), *map(dim, wrap(hint, terminal_width()))])


def _about_one(client: Client, verb: str, task: TaskView) -> list[Block]:
    short = task.id[:SHORT_ID]
    match verb:
        case "show":
            return [ListingBlock(tasks.task_details(task).split("\n"))]
        case "log":
            return _log(client, task)
        case "wait":
            return [NoticeBlock(f"task {short} {tasks.describe_task(_ended(client, task))}", "plain")]
        case "stop" | "kill":
            _, task = stop_task(client, task.id, force=verb == "kill")
            return [NoticeBlock(f"task {short} {tasks.describe_result(task)}", "plain")]
        case "pin" | "unpin":
            client.tasks.pin(task.id, pinned=verb == "pin")
            return [
                NoticeBlock(f"task {short}: " + ("kept whatever is pruned" if verb == "pin" else "a prune may take it"))
            ]
        case _:
            raise AssertionError(verb)


def _ended(client: Client, task: TaskView) -> TaskView:
    """Waits beside the conversation, also through a restart of the gateway."""
    for seen in wait_for_task(client, task.id, seconds=None, patience=math.inf):
        if not isinstance(seen, Disconnected | Reconnected):
            task = convert(seen, TaskView)
    return task


def _log(client: Client, task: TaskView) -> list[Block]:
    """Its last lines, and where there is more."""
    piece = read_output(client, task.id, raw=False, tail=LOG_LINES)
    text = clean(_without_colours(piece.data.decode("utf-8", "replace")))
    lines = [part for line in text.rstrip("\n").split("\n") for part in wrap(line, terminal_width())]
    if task.kind != "process":
        worker = task.worker[:SHORT_ID]
        rest = f"all of it: /resume {worker}, or {program()} sessions log {worker}"
    else:
        whole = "" if piece.offset == 0 else f"the last {plural(LOG_LINES, 'line')} of {size(piece.size)}; "
        rest = f"{whole}all of it: {program()} tasks log {task.id[:SHORT_ID]}"
    shown = lines if text.strip() else [dim("no output")]
    return [ListingBlock([*shown, *map(dim, wrap(f"{tasks.describe_task(task)}; {rest}", terminal_width()))])]


def _without_colours(text: str) -> str:
    from click import unstyle

    return unstyle(text)
