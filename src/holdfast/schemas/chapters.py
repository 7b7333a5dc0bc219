"""Chapters on the wire: when a session is reset, and what runs meanwhile."""

from __future__ import annotations

import msgspec

from holdfast.domain.events.chapter import ResetPolicy, ResetPostponed


class ResetRulesView(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for a session, after its own word, its profile's and the one for all."""

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
    """A background task of a session while it runs."""

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
    """The span that the model sees."""

    number: int
    after_turn: int
    version: int
    """Of the reset that opened it; 0 for the first chapter."""
    opened_at: int | None
    rule: str | None
    reason: str
    unseen: bool
    """A rule opened it, and nobody has said anything since."""
    summary: str | None
    """`model` or `digest`, when a summary stands in the place of its oldest turns."""
    compacting: bool


class ResetOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """When a session is reset by itself, and what stands in the way."""

    rules: ResetRulesView
    policy: ResetPolicy | None
    """What was chosen for this session alone."""
    origins: dict[str, str]
    """Who said each setting: `session`, `profile`, `config`, or nobody: `default`."""
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
    """What the model sees, and about how large it is."""

    model: str
    instructions: str
    tools: list[str]
    messages: list[ContextMessage]
    characters: int
    tokens: int
    """As the model counted at its last answer, and about what came since; before it, a quarter of the characters."""
    used: int
    """The same number."""
    counted: bool = True
    """Whether the model has counted them; otherwise it is an estimate."""
    threshold: int
    """Past so many it is made shorter; 0 is never."""
    limit: int
    """What does not fit; 0 is nothing."""
    limit_source: str
    """Who says so: `config`, the `window` of the model with room for its answer, or nobody, which is `default`."""
    chapter: int
    covers: int
    """A summary stands in the place of the turns up to this one; 0 is none."""
    summary: str | None
    """`model`, or `digest` while there is no better one."""
    window: int | None
    """How many tokens the model can see at once; null when nobody knows."""
