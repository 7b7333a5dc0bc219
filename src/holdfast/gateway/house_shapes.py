"""What the gateway says of its own house: the last hours, how it is, what the rules let go."""

from __future__ import annotations

import msgspec

from holdfast.store.rows import TaskCount, WorkSlot
from holdfast.tasks.views import TaskView


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The last hours in slots, also the empty ones; and the archive in numbers."""

    step_ms: int
    slots: list[WorkSlot]
    tasks: list[TaskCount]


class HealthFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the doctor looked at."""

    name: str
    ok: bool
    detail: str
    hint: str


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """All that the doctor looked at, as `holdfast doctor` says it."""

    ok: bool
    at: int
    findings: list[HealthFinding]


class LetGo(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule lets go."""

    rule: str
    count: int
    bytes: int
    tasks: list[TaskView]
    """The first 100 of them."""


class LetGoSessions(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions that one rule archives or deletes."""

    rule: str
    count: int
    titles: list[str]
    """The first 100 of them."""


class RetentionView(msgspec.Struct, frozen=True, kw_only=True):
    """The rules in `[retention]`, and what they let go: now, or with `pruned` just now."""

    tasks_days: int
    tasks_count: int
    tasks_megabytes: int
    sessions_archive_days: int
    sessions_delete_days: int
    pruned: bool
    count: int
    bytes: int
    rules: list[LetGo]
    sessions: list[LetGoSessions]


HOUSE_SHAPES = (Overview, Findings, RetentionView)
