"""Chapters in requests and responses: when a session is reset, what is running, and what the model sees."""

from __future__ import annotations

import msgspec

from holdfast.domain.events.chapter import ResetPolicy, ResetPostponed


class ResetRulesView(msgspec.Struct, frozen=True, kw_only=True):
    """The reset rules of a session: its own, else those of its profile, else those of config.toml."""

    mode: str
    idle_ms: int
    at_hour: int
    timezone: str
    max_postpone_ms: int
    process_max_age_ms: int
    on_live_process: str
    hand_over_note: bool
    notify: bool


class RunningTaskView(msgspec.Struct, frozen=True, kw_only=True):
    """A running background task of a session."""

    task: str
    kind: str
    """`process` or `agent`."""
    title: str
    command: str
    pid: int | None
    activity: str
    evidence: str
    age_ms: int
    lifetime: str


class ChapterView(msgspec.Struct, frozen=True, kw_only=True, rename={"number": "chapter"}):
    """The part of a session that the model sees."""

    number: int
    after_turn: int
    version: int
    """The version of the reset that opened it; 0 for the first chapter."""
    opened_at: int | None
    rule: str | None
    reason: str
    unseen: bool
    """A rule opened it, and there has been no message since."""
    summary: str | None
    """`model` or `digest` when a summary replaces its oldest turns."""
    compacting: bool


class ResetOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """When a session is reset automatically, and what postpones that."""

    rules: ResetRulesView
    policy: ResetPolicy | None
    """The settings of this session alone."""
    origins: dict[str, str]
    """Where each setting comes from: `session`, `profile`, `config` or `default`."""
    next_rule: str | None
    next_at: int | None
    postponed: ResetPostponed | None
    chapter: ChapterView
    running: list[RunningTaskView]


class ContextMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message as the model sees it."""

    role: str
    turn: int
    text: str
    characters: int


class ModelContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the model sees, and its approximate size."""

    model: str
    instructions: str
    tools: list[str]
    messages: list[ContextMessage]
    characters: int
    tokens: int
    """As counted with the last answer, plus an estimate for later messages; at first a quarter of the characters."""
    used: int
    """The same as `tokens`."""
    counted: bool = True
    """Whether the model has counted them; otherwise they are an estimate."""
    threshold: int
    """Above this many tokens it is summarised; 0 means never."""
    limit: int
    """The most tokens that fit; 0 means no limit."""
    limit_source: str
    """Where the limit comes from: `config`, the `window` of the model less room for its answer, or `default`."""
    chapter: int
    covers: int
    """A summary replaces the turns up to this one; 0 means none."""
    summary: str | None
    """Written by the `model`, or a `digest` made without one."""
    window: int | None
    """The context window of the model in tokens; null when it is not known."""
