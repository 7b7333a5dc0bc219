"""Running an ended task again: the first event of the new task, from that of the old one. Pure."""

from __future__ import annotations

import msgspec

from holdfast.domain.errors import Conflict
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.task import TaskStarted
from holdfast.store.rows import TaskRow


def rerun(started: TaskStarted, row: TaskRow, *, task: str, by: Actor) -> TaskStarted:
    """Return the start of a task that does what an ended one did. `Conflict` if that is not possible.

    It belongs to nobody but its caller: no session is notified of its end or ends it. A sandbox stays.
    """
    if row.state == "running":
        raise Conflict(f"Task {row.id} is still running.", hint="Stop it first, or start its command a second time.")
    if row.left_by:
        raise Conflict(f"Task {row.id} is what task {row.left_by} left behind.", hint=f"Run {row.left_by} again.")
    if row.kind == "card":
        raise Conflict(f"Task {row.id} is a run of a card.", hint="Retry the card.")
    if row.is_turn:
        raise Conflict(
            f"Task {row.id} is a turn of session {row.worker}.", hint="Send the message again in that session."
        )
    sandbox = started.sandbox
    return msgspec.structs.replace(
        started,
        task=task,
        by=by,
        session="",
        call="",
        worker=task if row.kind == "agent" else "",
        foreground=False,
        lifetime="persist",
        until=None,
        notify=False,
        tell="default",
        sandbox=None if sandbox is None else msgspec.structs.replace(sandbox, tmp=""),
    )
