"""Tasks in requests and responses: background work and its output."""

from __future__ import annotations

import msgspec

from holdfast.domain.card_number import card_label

OPEN = ("running", "unknown")
"""The states of a task that has not ended, as far as anybody knows."""


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """A task. What is not known is null."""

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
    tell: str = "default"
    """Whether people are notified of its end: `default` (the rules of each destination), `always` or `never`."""
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
    """The task whose command ended and left these processes behind; `pid` is the oldest that still runs."""
    ports: list[int]
    """The TCP ports that it listens on."""
    blocked: bool
    """Whether it is the run of a card that ended by blocking the card."""
    card: str = ""
    """The card whose run it is."""
    card_number: int = 0
    board: str = ""
    """The board of that card, as people call it."""
    activity: str
    activity_detail: str
    activity_evidence: str
    quiet_looks: int
    """How many samples in a row, seconds apart, found it idle and unused."""
    stale: str
    """Why it is stale: it runs, but is no longer needed; empty when it is not stale."""
    cpu: float | None
    """Share of one core since the last sample; null when it was not measured."""
    memory: int | None
    """Resident bytes of all its processes."""
    node: str = ""
    """The node on which its command runs or ran; empty where there is only one node."""
    unknown_since: int | None = None
    """When the node of a command whose state is `unknown` gave its last sign of life."""

    @property
    def is_open(self) -> bool:
        """Whether it has not ended, as far as anybody knows."""
        return self.state in OPEN

    @property
    def name(self) -> str:
        """What people call it: its title, after the number of its card."""
        return f"{card_label(self.card_number, self.card)} {self.title}" if self.card else self.title


class TaskAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command about a task was committed. `session` is the one that works on it or started it."""

    task: str
    session: str
    stream: str
    version: int
    seq: int
    duplicate: bool


class TaskPage(msgspec.Struct, frozen=True):
    """A page of tasks; `next` is the cursor of the next page."""

    tasks: list[TaskView]
    next: str | None


class OutputGap(msgspec.Struct, frozen=True):
    """Bytes that were deleted because the output was too long."""

    start: int
    end: int


class OutputPage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an output without control characters; continue at `next`. Offsets never shift."""

    offset: int
    next: int
    size: int
    state: str
    dropped: OutputGap | None
    text: str


class OutputMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A place in an output with a text, from `offset` to `end`, and the part of its line around it."""

    offset: int
    end: int
    line: int | None
    """Where its line begins; null if that is more than 8 KiB before it."""
    before: str
    text: str
    after: str


class OutputMatches(msgspec.Struct, frozen=True, kw_only=True):
    """Where an output has a text, in the order of the output; continue at `next`."""

    matches: list[OutputMatch]
    next: int
    more: bool
    """Whether there is output after `next` that was not searched."""
    size: int
    state: str
    dropped: OutputGap | None
    """Bytes that could not be searched, because they were dropped."""


class OutputHit(msgspec.Struct, frozen=True, kw_only=True):
    """A task whose output contains a text."""

    task: str
    title: str
    at: int
    snippet: str


class OutputHits(msgspec.Struct, frozen=True):
    """Search results in outputs, newest first."""

    hits: list[OutputHit]


class PruneResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted, or would be."""

    pruned: bool
    count: int
    bytes: int
    tasks: list[TaskView]
    """The first 500 of them."""


class WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """How many bytes of the input the command has read."""

    bytes: int
    of: int
