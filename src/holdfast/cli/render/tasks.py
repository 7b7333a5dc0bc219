"""Tasks as text: tables of them, all details of one, and one in a sentence."""

from __future__ import annotations

from holdfast.cli.hints import program
from holdfast.cli.screen import (
    SHORT_ID,
    Column,
    age,
    ago,
    clean,
    details,
    dim,
    duration,
    format_datetime,
    one_line,
    plural,
    table,
    terminal_width,
    unique_length,
    wrap,
)
from holdfast.domain.text import size
from holdfast.schemas.tasks import OutputHits, PruneResult, TaskView

MINUTE = 60_000
WIDE = 100
"""Columns from which on there is room for the details."""
COMMON = (Column("ID"), Column("KIND"), Column("SESSION"), Column("STATE", states=True))
OUTPUT, WHAT = Column("OUTPUT", right=True), Column("WHAT", flexible=True)
RUNNING = (*COMMON, Column("ACTIVITY"), Column("AGE", right=True), OUTPUT, WHAT)
ENDED = (*COMMON, Column("EXIT", right=True), Column("STARTED"), Column("TOOK", right=True), OUTPUT, WHAT)
HITS = (Column("TASK"), Column("STARTED"), WHAT, Column("TEXT", flexible=True))
STALE = (Column("ID"), Column("SESSION"), Column("PID", right=True), Column("AGE", right=True), WHAT)
PRUNED_ROWS = 50
NOTHING_FOUND = "Nothing found. The text must occur exactly as you typed it; try a shorter one."
NOTHING_STALE = "Nothing is stale: every background command is working, in use, pinned or started by a person."


def running_table(tasks: list[TaskView]) -> str:
    """What each task is doing, and for how long."""
    length = unique_length([task.id for task in tasks])
    doing = activity if terminal_width() >= WIDE else _activity_word
    rows = [[*_common(task, length), doing(task), age(task.duration_ms), _printed(task), task.name] for task in tasks]
    return table(*_with_nodes(RUNNING, rows, tasks))


def ended_table(tasks: list[TaskView]) -> str:
    """How each task ended."""
    length = unique_length([task.id for task in tasks])
    rows = [
        [*_common(task, length), _exit(task), ago(task.started_at), _took(task), _printed(task), task.name]
        for task in tasks
    ]
    return table(*_with_nodes(ENDED, rows, tasks))


def _with_nodes(
    columns: tuple[Column, ...], rows: list[list[str]], tasks: list[TaskView]
) -> tuple[tuple[Column, ...], list[list[str]]]:
    """The node of each task before the last column, where there is more than one node."""
    if not any(task.node for task in tasks):
        return columns, rows
    placed = [[*row[:-1], task.node or "-", row[-1]] for row, task in zip(rows, tasks, strict=True)]
    return (*columns[:-1], Column("NODE"), columns[-1]), placed


def stale_table(tasks: list[TaskView]) -> str:
    """A table with the reason below each row, where there is room for it."""
    length = unique_length([task.id for task in tasks])
    indent = " " * (length + 2)
    cells = [
        [task.id[:length], task.session[:SHORT_ID] or "-", str(task.pid or ""), age(task.duration_ms), task.title]
        for task in tasks
    ]
    head, *rows = table(STALE, cells).split("\n")
    lines = [head]
    for row, task in zip(rows, tasks, strict=True):
        reason = wrap(one_line(task.stale), max(20, terminal_width() - len(indent)))
        lines += [row, *(indent + dim(line) for line in reason)]
    return "\n".join(lines)


def hits_table(found: OutputHits) -> str:
    """In which outputs a text was found."""
    if not found.hits:
        return NOTHING_FOUND
    length = unique_length([hit.task for hit in found.hits])
    return table(HITS, [[hit.task[:length], ago(hit.at), hit.title, hit.snippet] for hit in found.hits])


def prune_result(result: PruneResult, *, rule: str) -> str:
    """What was deleted or would be, and how much that frees; `rule` says what was asked for."""
    if not result.count:
        return f"There is no task to delete{rule}."
    lines = [ended_table(result.tasks[:PRUNED_ROWS])]
    if result.count > PRUNED_ROWS:
        lines.append(f"… and {plural(result.count - PRUNED_ROWS, 'more task')}")
    deleted, freed = ("deleted", "freed") if result.pruned else ("would delete", "free")
    lines.append(f"{deleted} {plural(result.count, 'task')}{rule} and {freed} {size(result.bytes)}")
    return "\n".join(lines)


def _common(task: TaskView, length: int) -> list[str]:
    return [task.id[:length], task.kind, task.session[:SHORT_ID] or "-", display_state(task)]


def display_state(task: TaskView) -> str:
    """Its state; a run that ended by blocking its card is blocked and not stopped."""
    return "blocked" if task.blocked else task.state


def _exit(task: TaskView) -> str:
    """The exit code or the signal of a command that ended."""
    return task.signal or ("-" if task.exit_code is None else str(task.exit_code))


def _took(task: TaskView) -> str:
    return duration(task.duration_ms) if task.duration_ms < MINUTE else age(task.duration_ms)


def _printed(task: TaskView) -> str:
    """How much it printed; what an agent says is in its session."""
    return size(task.output_bytes) if task.kind == "process" and task.state != "unknown" else "-"


def activity(task: TaskView) -> str:
    """What it is doing, as far as that was measured."""
    detail = task.activity_detail
    word = task.activity + (f" {detail}" if detail.startswith("on ") else f", {detail}" if detail else "")
    if task.ports:
        word += f", port {' '.join(map(str, task.ports))}"
    return word or ("at work" if task.kind != "process" and task.state == "running" else "")


def _since(task: TaskView) -> str:
    return "" if task.unknown_since is None else f" since {format_datetime(task.unknown_since)}"


def _activity_word(task: TaskView) -> str:
    return task.activity or activity(task)


def describe_task(task: TaskView) -> str:
    """For how long it has run and what it is doing, or how it ended."""
    took = duration(task.duration_ms)
    if task.state == "running":
        doing = "activity unknown" if task.activity == "unknown" else activity(task)
        return f"running for {took}" + (f", {doing}" if doing else "")
    if task.state == "unknown":
        return f"unknown{_since(task)}: {one_line(task.reason)}"
    return f"{display_state(task)} after {took}: {one_line(task.reason)}"


def describe_result(task: TaskView) -> str:
    """What became of a task that was asked to end, and which of its processes are still alive."""
    if task.state == "running":
        return f"was asked to end, and is still {describe_task(task)}"
    if task.state == "unknown":
        return f"is stopped when node {task.node} is back; {describe_task(task)}"
    return describe_task(task) + (f"; still alive: {', '.join(task.survivors)}" if task.survivors else "")


# --- all details ----------------------------------------------------------------------------------


def task_details(task: TaskView) -> str:
    """Names and values. What nobody can know is said to be unknown."""
    is_process = task.kind == "process"
    rows = [
        ("task", task.id),
        ("kind", task.kind + (", a turn waited for it" if task.foreground else "")),
        ("title", one_line(task.title)),
        ("command" if is_process else "prompt", _command(task)),
        ("directory", task.cwd),
        *([("node", task.node)] if task.node else []),
        ("state", describe_task(task)),
        ("started", f"{format_datetime(task.started_at)} by {_origin(task)}"),
    ]
    if task.finished_at is not None:
        rows.append(("ended", f"{format_datetime(task.finished_at)}, {_ended_by(task)}"))
    if is_process:
        rows += [*_process(task), ("lifetime", _lifetime(task))]
    if task.stale:
        rows.append(("stale", task.stale))
    rows += [("pinned", "yes (never pruned)" if task.pinned else "no"), ("files changed", _files(task))]
    if task.tell != "default":
        rows.append(("notifications", task.tell))
    if task.evidence:
        rows.append(("evidence", task.evidence))
    if task.survivors:
        rows.append(("survivors", ", ".join(task.survivors)))
    if said := task.summary or task.preview:
        rows.append(("output ends" if is_process else "said last", clean(said).strip()))
    return details([*rows, *_links(task)])


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
        return f"at the request of {task.ended_by}"
    if task.state == "lost":
        return "not known exactly: its end was not observed"
    return task.reason if task.state == "stopped" else "by itself"


def _process(task: TaskView) -> list[tuple[str, str]]:
    rows = [("pid", "none: it never started" if task.pid is None else str(task.pid))]
    if task.state == "unknown":
        return rows
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
            return f"until {format_datetime(task.until)}"
        case "chapter":
            return "chapter: it ends at the next reset of its session"
        case "session":
            return "session: it ends when its session is archived or deleted"
        case word:
            return f"{word}: until it ends or is stopped"


def _files(task: TaskView) -> str:
    if task.files is None:
        return "not known" if not task.is_open else "not known until it has ended"
    return ", ".join(task.files) or "none"


def _links(task: TaskView) -> list[tuple[str, str]]:
    rows = []
    if task.session:
        rows.append(("session", f"{program()} sessions show {task.session}"))
    if task.worker:
        rows.append(("worker", f"{program()} sessions log {task.worker}"))
    return [*rows, ("log", f"{program()} tasks log {task.id}"), ("why", f"{program()} why {task.id}")]
