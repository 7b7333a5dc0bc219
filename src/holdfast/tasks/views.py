"""Tasks as agents, the command line and the API show them."""

from __future__ import annotations

import signal

import msgspec

from holdfast.domain.task import Owner, stale
from holdfast.domain.text import duration, size
from holdfast.processes.activity import Activity, NotYet
from holdfast.schemas.tasks import TaskView
from holdfast.store.rows import CardOfSession, TaskRow
from holdfast.tasks.remote_tasks import AwayNode

BLOCKED = "blocked ("
"""How the reason of a run starts that ended by blocking its card."""
NOT_SEEN = ("unknown", "", "it started after the last sample")
STARTING = ("starting", "", "it is about to start, or has just started")


def view(
    row: TaskRow,
    *,
    now: int,
    output_bytes: int | None,
    activity: Activity | NotYet | None,
    owner: Owner | None = None,
    card: CardOfSession | None = None,
) -> TaskView:
    """Return a task with its current activity."""
    age_ms = (now if row.finished_at is None else row.finished_at) - row.started_at
    alive = row.finished_at is None and row.kind == "process"
    word, detail, evidence = _activity(activity, starting=row.pid is None) if alive else ("", "", "")
    measured = activity if isinstance(activity, Activity) else None
    processes = () if measured is None else measured.evidence.pids
    pid_is_gone = row.left_by and processes and row.pid not in processes
    shown = msgspec.structs.asdict(row) | {
        "blocked": row.kind == "card" and row.reason.startswith(BLOCKED),
        "card": "" if card is None else card.card,
        "card_number": 0 if card is None else card.number,
        "board": "" if card is None else card.board,
        "duration_ms": max(0, age_ms),
        "ended_by": stopper(row),
        "activity": word,
        "activity_detail": detail,
        "activity_evidence": evidence,
        "stale": stale(
            started_at=row.started_at, age_ms=age_ms, activity=word, detail=detail, pinned=row.pinned, owner=owner
        ),
        "quiet_looks": 0 if measured is None else measured.quiet_looks,
        "ports": [] if measured is None else list(measured.evidence.ports),
        "cpu": None if measured is None else round(measured.evidence.cpu, 3),
        "memory": None if measured is None else measured.evidence.memory,
        "pid": processes[0] if pid_is_gone else row.pid,
        "output_bytes": row.output_bytes if output_bytes is None else output_bytes,
        "node": "",
    }
    return msgspec.convert(shown, TaskView)


def placed(view: TaskView, row: TaskRow, away: AwayNode | None, *, several: bool, now: int) -> TaskView:
    """Return a task with its node, where there are several; what runs on one that is away is unknown."""
    if row.kind != "process" or not several:
        return view
    if away is None or row.state != "running":
        return msgspec.structs.replace(view, node=row.node)
    return msgspec.structs.replace(
        view,
        node=row.node,
        state="unknown",
        reason=away.words(now),
        unknown_since=away.since or None,
        activity="",
        activity_detail="",
        activity_evidence="",
        stale="",
    )


def stopper(row: TaskRow) -> str:
    """Return who stopped the task, with the reason if known; empty when it ended by itself."""
    return f"{row.stop_by} ({row.stop_reason})" if row.stop_reason else row.stop_by


def _activity(activity: Activity | NotYet | None, *, starting: bool) -> tuple[str, str, str]:
    """Return the activity of a running command: a word, a detail and the evidence."""
    match activity:
        case _ if starting:
            return STARTING
        case None:
            return NOT_SEEN
        case NotYet(seconds=seconds):
            return "unknown", "", f"no activity so far, but observed for only {seconds:.0f} s"
        case Activity(word="idle", quiet_seconds=seconds):
            return "idle", "", f"no output, CPU or network for {duration(int(seconds * 1000))}"
        case Activity(word=word, detail=detail, evidence=found):
            parts = [f"CPU {100 * found.cpu:.0f} %", f"I/O {size(int(found.io))}/s", f"output {size(found.output)}"]
            return word, detail or "", f"{', '.join(parts)} in {duration(int(found.seconds * 1000))}"


def table(views: list[TaskView], *, session: str) -> str:
    """Return the list for an agent: tasks of its own session first, others marked."""
    if not views:
        return "Nothing is running in the background."
    own = [view for view in views if view.session == session]
    others = [view for view in views if view.session != session]
    return "\n".join([*(_line(view, "") for view in own), *(_line(view, " (of another session)") for view in others)])


def _line(view: TaskView, mark: str) -> str:
    parts = [view.id, view.kind, view.state if view.state != "running" else f"running {duration(view.duration_ms)}"]
    if view.activity:
        parts.append(" ".join(filter(None, (view.activity, view.activity_detail))))
    if view.pid is not None and view.state == "running":
        parts.append(f"pid {view.pid}")
    if view.ports:
        parts.append(f"port {' '.join(map(str, view.ports))}")
    if view.state != "running":
        parts.append(view.reason)
    if view.stale:
        parts.append("stale")
    return f"{', '.join(parts)}, {size(view.output_bytes)} of output: {view.title}{mark}"


def signal_name(number: int) -> str:
    """Return the name of a signal, as in SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
