"""Tasks on the wire: the archive of background work and its output."""

from __future__ import annotations

import msgspec


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the archive. What nobody can know is null."""

    id: str
    kind: str
    title: str
    command: str
    argv: list[str]
    cwd: str
    state: str
    started_by: str
    session: str
    call: str
    worker: str
    foreground: bool
    lifetime: str
    until: int | None
    notify: bool
    pinned: bool
    started_at: int
    finished_at: int | None
    duration_ms: int
    pid: int | None
    exit_code: int | None
    signal: str
    reason: str
    evidence: str
    ended_by: str
    output_bytes: int
    dropped_bytes: int
    preview: str
    summary: str
    files: list[str] | None
    survivors: list[str]
    left_by: str
    """The task whose command ended and left these processes behind; `pid` is the oldest of them that lives."""
    ports: list[int]
    """The TCP ports that it listens on."""
    blocked: bool
    """The run of a card that ended by blocking it."""
    activity: str
    activity_detail: str
    activity_evidence: str
    quiet_looks: int
    """How many looks in a row, seconds apart, found it at no work and in nobody's use."""
    stale: str
    """Why it is stale, if it is: it runs and nobody waits for it any more."""
    cpu: float | None
    """Of one core, since the look before; null when it was not measured."""
    memory: int | None
    """Resident bytes of the whole tree."""


class TaskAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command about a task was committed. `session` is the one that works on it, or that started it."""

    task: str
    session: str
    stream: str
    version: int
    seq: int
    duplicate: bool


class TaskPage(msgspec.Struct, frozen=True):
    """A page of the archive; `next` is the cursor of the following one."""

    tasks: list[TaskView]
    next: str | None


class OutputGap(msgspec.Struct, frozen=True):
    """Bytes that were given back to the disk because the output was too long."""

    start: int
    end: int


class OutputPage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an output, clean for a screen; ask again from `next` on. Offsets never shift."""

    offset: int
    next: int
    size: int
    state: str
    dropped: OutputGap | None
    text: str


class OutputHit(msgspec.Struct, frozen=True, kw_only=True):
    """A task in whose output a text was found."""

    task: str
    title: str
    at: int
    snippet: str


class OutputHits(msgspec.Struct, frozen=True):
    """What a search in the outputs found, newest first."""

    hits: list[OutputHit]


class PruneResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune took, or would take."""

    pruned: bool
    count: int
    bytes: int
    tasks: list[TaskView]
    """The first 500 of them."""


class WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what was typed the command took."""

    bytes: int
    of: int
