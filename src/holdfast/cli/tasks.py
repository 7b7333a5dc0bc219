"""How a task looks on a terminal: as a line of a table, as all that is known of it, and in a sentence.

The command line and the chat both show tasks with these, so they never disagree.
"""

from __future__ import annotations

from holdfast.cli.hints import program
from holdfast.cli.screen import (
    SHORT_ID,
    Column,
    age,
    ago,
    clean,
    dim,
    duration,
    moment,
    one_line,
    size,
    table,
    terminal_width,
    unique_length,
    wrap,
)
from holdfast.client.client import Client
from holdfast.client.http import Json
from holdfast.client.lenient import convert
from holdfast.schemas.tasks import OutputHit, TaskView

PAGE = 500
KINDS = ("process", "agent", "card")
MINUTE = 60_000
WIDE = 100
"""Columns from which on there is room for the details."""
RUNNING = (
    Column("ID"),
    Column("KIND"),
    Column("SESSION"),
    Column("STATE", states=True),
    Column("ACTIVITY"),
    Column("AGE", right=True),
    Column("OUTPUT", right=True),
    Column("WHAT", flexible=True),
)
ENDED = (
    Column("ID"),
    Column("KIND"),
    Column("SESSION"),
    Column("STATE", states=True),
    Column("EXIT", right=True),
    Column("STARTED"),
    Column("TOOK", right=True),
    Column("OUTPUT", right=True),
    Column("WHAT", flexible=True),
)
HITS = (Column("TASK"), Column("STARTED"), Column("WHAT", flexible=True), Column("TEXT", flexible=True))
STALE = (
    Column("ID"),
    Column("SESSION"),
    Column("PID", right=True),
    Column("AGE", right=True),
    Column("WHAT", flexible=True),
)
NOTHING_STALE = "Nothing is stale: whatever runs in the background is at work, in use, pinned or started by a person."
NOTHING_RUNS = "Nothing runs in the background."


def find(client: Client, id: str) -> TaskView:
    """One task by id or unique prefix."""
    return client.tasks.get(id)


def running(
    client: Client, *, foreground: bool = False, session: str | None = None, kind: str | None = None
) -> list[TaskView]:
    """Everything that runs now, newest first."""
    return convert(running_rows(client, foreground=foreground, session=session, kind=kind), list[TaskView])


def running_rows(
    client: Client, *, foreground: bool = False, session: str | None = None, kind: str | None = None
) -> list[Json]:
    """The same as the gateway sends it."""
    rows: list[Json] = []
    before: str | None = None
    while True:
        page = client.get(
            "/v1/tasks", state="running", all=foreground, session=session, kind=kind, limit=PAGE, before=before
        )
        rows += page["tasks"]
        before = page["next"]
        if before is None:
            return rows


# --- lines ----------------------------------------------------------------------------------------


def running_cells(tasks: list[TaskView]) -> list[list[str]]:
    """For RUNNING."""
    length = unique_length([task.id for task in tasks])
    doing = activity if terminal_width() >= WIDE else _activity_word
    return [[*_common(task, length), doing(task), age(task.duration_ms), _printed(task), task.title] for task in tasks]


def stale_lines(tasks: list[TaskView]) -> list[str]:
    """A table whose rows have their reason below, where there is room for it."""
    length = unique_length([task.id for task in tasks])
    cells = [
        [
            task.id[:length],
            task.session[:SHORT_ID] or "-",
            str(task.pid or ""),
            age(task.duration_ms),
            task.title,
        ]
        for task in tasks
    ]
    head, *rows = table(STALE, cells).split("\n")
    lines = [head]
    for row, task in zip(rows, tasks, strict=True):
        room = max(20, terminal_width() - length - 2)
        lines += [row, *(" " * (length + 2) + dim(line) for line in wrap(one_line(task.stale), room))]
    return lines


def ended_cells(tasks: list[TaskView]) -> list[list[str]]:
    """For ENDED."""
    length = unique_length([task.id for task in tasks])
    return [
        [*_common(task, length), _exit(task), ago(task.started_at), _took(task), _printed(task), task.title]
        for task in tasks
    ]


def hit_cells(hits: list[OutputHit]) -> list[list[str]]:
    """For HITS."""
    length = unique_length([hit.task for hit in hits])
    return [[hit.task[:length], ago(hit.at), hit.title, hit.snippet] for hit in hits]


def _common(task: TaskView, length: int) -> list[str]:
    return [task.id[:length], task.kind, task.session[:SHORT_ID] or "-", state_word(task)]


def state_word(task: TaskView) -> str:
    """Its state; a run that ended by blocking its card is blocked and not stopped."""
    return "blocked" if task.blocked else task.state


def _exit(task: TaskView) -> str:
    """The exit code or the signal of a command that ended."""
    code = task.exit_code
    return str(task.signal or ("-" if code is None else code))


def _took(task: TaskView) -> str:
    return duration(task.duration_ms) if task.duration_ms < MINUTE else age(task.duration_ms)


def _printed(task: TaskView) -> str:
    """How much it printed; what an agent says is in its session."""
    return size(task.output_bytes) if task.kind == "process" else "-"


def activity(task: TaskView) -> str:
    """What it is doing, as far as that was measured."""
    detail = task.activity_detail
    word = task.activity + (f" {detail}" if detail.startswith("on ") else f", {detail}" if detail else "")
    if task.ports:
        word += f", port {' '.join(map(str, task.ports))}"
    return word or ("at work" if task.kind != "process" and task.state == "running" else "")


def _activity_word(task: TaskView) -> str:
    return task.activity or activity(task)


def in_words(task: TaskView) -> str:
    """How it stands, in one line."""
    took = duration(task.duration_ms)
    if task.state == "running":
        return f"running for {took}" + (f", {doing}" if (doing := activity(task)) else "")
    return f"{state_word(task)} after {took}: {one_line(task.reason)}"


# --- all of it ------------------------------------------------------------------------------------


def all_facts(task: TaskView) -> list[tuple[str, str]]:
    """Names and values for a person. What nobody can know is said to be unknown."""
    process = task.kind == "process"
    rows = [
        ("task", task.id),
        ("kind", task.kind + (", a turn waited for it" if task.foreground else "")),
        ("title", one_line(task.title)),
        ("command" if process else "prompt", _command(task)),
        ("directory", task.cwd),
        ("state", in_words(task)),
        ("started", f"{moment(task.started_at)} by {_origin(task)}"),
    ]
    if task.finished_at is not None:
        rows.append(("ended", f"{moment(task.finished_at)}, {_ended_by(task)}"))
    if process:
        rows += [*_process(task), ("lifetime", _lifetime(task))]
    if task.stale:
        rows.append(("stale", task.stale))
    rows += [
        ("pinned", "yes, no prune takes it" if task.pinned else "no"),
        ("files changed", _files(task)),
    ]
    if task.evidence:
        rows.append(("evidence", task.evidence))
    if task.survivors:
        rows.append(("survivors", ", ".join(task.survivors)))
    said = task.summary or task.preview
    if said:
        rows.append(("output ends" if process else "said last", clean(said).strip()))
    return [*rows, *_links(task)]


def _command(task: TaskView) -> str:
    if not task.argv:
        return task.command
    from shlex import join

    return join(task.argv)


def _origin(task: TaskView) -> str:
    origin = f" from session {task.session}" if task.session else ""
    return f"{task.started_by}{origin}" + (f", call {task.call}" if task.call else "")


def _ended_by(task: TaskView) -> str:
    if task.ended_by:
        return f"on the word of {task.ended_by}"
    if task.state == "lost":
        return "as far as is known; nobody saw it"
    return task.reason if task.state == "stopped" else "by itself"


def _process(task: TaskView) -> list[tuple[str, str]]:
    rows = [("pid", "none: it never started" if task.pid is None else str(task.pid))]
    if task.state == "running":
        if task.ports:
            rows.append(("port", " ".join(map(str, task.ports))))
        if task.left_by:
            rows.append(("left by", f"task {task.left_by}, whose command has ended"))
        rows.append(("activity", f"{activity(task) or 'unknown'} ({task.activity_evidence or 'not measured yet'})"))
    elif task.signal:
        rows.append(("signal", task.signal))
    else:
        rows.append(("exit code", "not known" if task.exit_code is None else str(task.exit_code)))
    dropped = f", {size(task.dropped_bytes)} in the middle were dropped" if task.dropped_bytes else ""
    return [*rows, ("output", size(task.output_bytes) + dropped)]


def _lifetime(task: TaskView) -> str:
    match task.lifetime:
        case "until" if task.until is not None:
            return f"until {moment(task.until)}"
        case "chapter":
            return "chapter: it ends at the next reset of its session"
        case "session":
            return "session: it ends when its session is archived or deleted"
        case word:
            return f"{word}: until it ends or is stopped"


def _files(task: TaskView) -> str:
    if task.files is None:
        return "not known" if task.state != "running" else "known when it has ended"
    return ", ".join(task.files) or "none"


def _links(task: TaskView) -> list[tuple[str, str]]:
    rows = []
    if task.session:
        rows.append(("session", f"{program()} sessions show {task.session}"))
    if task.worker:
        rows.append(("worker", f"{program()} sessions log {task.worker}"))
    return [*rows, ("log", f"{program()} tasks log {task.id}"), ("why", f"{program()} why {task.id}")]
