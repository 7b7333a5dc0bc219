"""The gateway about itself, on the wire: state, health, profiles, models, retention, errors."""

from __future__ import annotations

import msgspec

from holdfast.schemas.tasks import TaskView


class ErrorDetail(msgspec.Struct, frozen=True):
    """What went wrong and what to do next."""

    code: str
    message: str
    hint: str


class Error(msgspec.Struct, frozen=True):
    """The shape of every error."""

    error: ErrorDetail


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence and the event that it rests on."""

    text: str
    stream: str
    version: int
    at: int


class Why(msgspec.Struct, frozen=True):
    """The answer to `why`."""

    subject: str
    sentences: list[Statement]


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway about itself."""

    version: str
    pid: int
    home: str
    url: str
    started_at: int
    uptime_ms: int
    writable: bool
    problem: str
    sessions: int
    archived: int
    messages: int
    events: int
    seq: int
    """Where the log ends; larger than the number of events once something was deleted."""
    working: list[str]
    tasks: int
    """How many run in the background."""
    inbox: dict[str, int]
    """What waits for a person: how many of each kind."""


class PartHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the gateway that follows the log and has trouble, or had to be started again."""

    name: str
    problem: str
    since: int
    restarts: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it is up, for process managers."""

    status: str
    version: str
    pid: int
    problem: str
    parts: list[PartHealth] = []


class Restart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the gateway is to start again."""

    env: dict[str, str] = {}
    """Variables to set in its environment, for a key that was exported since; those that it has stay."""


class ShuttingDown(msgspec.Struct, frozen=True):
    """The gateway is about to end."""

    pid: int


class ProfileView(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that a session can have."""

    name: str
    model: str
    cwd: str
    instructions: str
    tools: dict[str, str]
    mcp: list[str]
    max_steps: int
    max_tokens: int
    max_minutes: int
    origin: str
    default: bool
    sandbox: str
    """Whether its commands run in a sandbox, in words."""


class ProfileList(msgspec.Struct, frozen=True):
    """All profiles, and what is wrong with the settings if something is."""

    profiles: list[ProfileView]
    problem: str


class DetectedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that can be used as it is."""

    provider: str
    how: str
    models: list[str]


class ModelList(msgspec.Struct, frozen=True):
    """What was detected on this machine."""

    detected: list[DetectedModel]


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


class RetentionEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule lets go."""

    rule: str
    count: int
    bytes: int
    tasks: list[TaskView]
    """The first 100 of them."""


class RetentionSessions(msgspec.Struct, frozen=True, kw_only=True):
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
    rules: list[RetentionEffect]
    sessions: list[RetentionSessions]


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

    state: str
    count: int
    bytes: int


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The last hours in slots, also the empty ones; and the archive in numbers."""

    step_ms: int
    slots: list[WorkSlot]
    tasks: list[TaskCount]
