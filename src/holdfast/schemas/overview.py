"""What happened in the last hours, on the wire."""

from __future__ import annotations

import msgspec

from holdfast.domain.events.task import TaskState


class WorkSlot(msgspec.Struct, frozen=True, gc=False):
    """What ended within a slot of time that begins `at`; waits are those that began."""

    at: int
    turns: int
    tasks: int
    failed: int
    """Of both; also what was lost."""
    waits: int


class TaskCount(msgspec.Struct, frozen=True, gc=False):
    """How many tasks are in a state, and what their outputs take."""

    state: TaskState
    count: int
    bytes: int


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The last hours in slots, also the empty ones; and the archive in numbers."""

    step_ms: int
    slots: list[WorkSlot]
    tasks: list[TaskCount]
