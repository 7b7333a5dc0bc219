"""State, health, profiles, models, retention and errors of the gateway in requests and responses."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from holdfast.schemas.tasks import TaskView


class ErrorDetail(msgspec.Struct, frozen=True):
    """What went wrong, and what to do about it."""

    code: str
    message: str
    hint: str


class Error(msgspec.Struct, frozen=True):
    """The shape of every error."""

    error: ErrorDetail


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence and the event that it is based on."""

    text: str
    stream: str
    version: int
    at: int


class Why(msgspec.Struct, frozen=True):
    """Why something is in its current state."""

    subject: str
    sentences: list[Statement]


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the gateway."""

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
    """The last position in the log; larger than the number of events once something was deleted."""
    working: list[str]
    tasks: int
    """How many tasks run in the background."""
    inbox: dict[str, int]
    """How many entries the inbox has, by kind."""


class PartHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the gateway that follows the log and has a problem, or had to be restarted."""

    name: str
    problem: str
    since: int
    restarts: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the gateway is up, for process managers."""

    status: str
    version: str
    pid: int
    problem: str
    parts: list[PartHealth] = []


class Readiness(msgspec.Struct, frozen=True):
    """Whether the gateway takes requests, for load balancers."""

    status: str
    """`ready`, `starting`, `draining`, or `unavailable`: the store takes no writes, or the life of the node was not
    renewed.
    """


class Restart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to restart the gateway."""

    env: dict[str, str] = {}
    """Variables to add to its environment, such as a key that was exported since it started."""


class ShuttingDown(msgspec.Struct, frozen=True):
    """The gateway is about to shut down or restart."""

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
    """Whether its commands run in a sandbox, as a sentence."""
    key_name: str = ""
    """The variable of the gateway's environment that holds the key of its model; empty if it needs none."""
    key_set: bool = True
    """Whether that variable is set."""
    agent: str = ""
    """The external agent that does the work, and then there is no `model`; empty for the built-in one."""


class NewProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A profile to add."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """`demo`, or PROVIDER:MODEL."""
    instructions: Annotated[str, msgspec.Meta(max_length=200_000)] | None = None
    cwd: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    """Its working directory; empty is the one of each session."""
    tools: dict[str, Literal["allow", "ask", "deny"]] | None = None
    """All of its rules for tools."""


class EditProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of a profile to change; those that are left out stay as they are."""

    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    instructions: Annotated[str, msgspec.Meta(max_length=200_000)] | None = None
    cwd: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    tools: dict[str, Literal["allow", "ask", "deny"]] | None = None


class ProfileList(msgspec.Struct, frozen=True):
    """All profiles, and the error in the settings if there is one."""

    profiles: list[ProfileView]
    problem: str
    cwd: str = ""
    """The directory of a session for which neither its profile nor the command that creates it names one."""


class DetectedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that can be used without further settings."""

    provider: str
    how: str
    models: list[str]


class ModelList(msgspec.Struct, frozen=True):
    """The models that were found on this machine."""

    detected: list[DetectedModel]


class HealthFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One check of the doctor."""

    name: str
    ok: bool
    detail: str
    hint: str


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of the doctor, as `holdfast doctor` prints them."""

    ok: bool
    at: int
    findings: list[HealthFinding]


class RetentionEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that one rule deletes."""

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
    """The rules in `[retention]`, and what they would delete now; with `pruned`, what was deleted."""

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
    """What ended in the time slot that begins `at`; `waits` counts those that began."""

    at: int
    turns: int
    tasks: int
    failed: int
    """Failed or lost turns and tasks."""
    waits: int


class TaskCount(msgspec.Struct, frozen=True, gc=False):
    """How many tasks are in a state, and the size of their outputs."""

    state: str
    count: int
    bytes: int


class Spend(msgspec.Struct, frozen=True, kw_only=True):
    """What the turns that ended in these hours took."""

    cost: float
    """In dollars, of the turns whose models have a known price."""
    tokens: int
    unpriced: int
    """How many turns used tokens of models without a known price."""


class DiskUse(msgspec.Struct, frozen=True, kw_only=True):
    """The disk that the home is on, in bytes."""

    database: int
    output: int
    """Of all tasks."""
    free: int


class SharedSettingsView(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of all nodes that work on one database."""

    version: int = 0
    """Grows by one with every change; 0 where the settings are in config.toml."""
    text: str = ""
    """TOML, without what is about one machine."""
    changed_by: str = ""
    changed_at: int = 0


class ReplaceSharedSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replace the settings of all nodes."""

    text: str
    version: int
    """The version that is replaced."""


class SettingsView(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that can be changed from a client."""

    path: str
    """Of `config.toml` on the machine of the gateway."""
    default_profile: str
    """What is written there; empty if the gateway chooses."""
    session_reset: ResetView
    retention: RetentionChoice


class ResetView(msgspec.Struct, frozen=True, kw_only=True):
    """`[session_reset]`: when a session begins a new chapter."""

    mode: str
    idle_minutes: int
    at_hour: int


class ResetChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of `[session_reset]` that can be set."""

    mode: Literal["none", "idle", "daily", "both"]
    idle_minutes: Annotated[int, msgspec.Meta(ge=1, le=10**7)]
    at_hour: Annotated[int, msgspec.Meta(ge=0, le=23)]


class RetentionChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[retention]`: what is deleted by itself; 0 keeps everything."""

    tasks_days: Annotated[int, msgspec.Meta(ge=0, le=36_500)]
    tasks_count: Annotated[int, msgspec.Meta(ge=0, le=10**9)]
    tasks_megabytes: Annotated[int, msgspec.Meta(ge=0, le=10**9)]
    sessions_archive_days: Annotated[int, msgspec.Meta(ge=0, le=36_500)]
    sessions_delete_days: Annotated[int, msgspec.Meta(ge=0, le=36_500)]


class EditSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings to change; those that are left out stay as they are."""

    default_profile: str | None = None
    session_reset: ResetChoice | None = None
    retention: RetentionChoice | None = None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The last hours in time slots, including empty ones, and the number of tasks by state."""

    step_ms: int
    slots: list[WorkSlot]
    tasks: list[TaskCount]
    spend: Spend
    disk: DiskUse
