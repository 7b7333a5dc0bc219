"""How large a context is, above which size it is made shorter, and how large it may be at all. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from holdfast.domain.session import Session

OnFailure = Literal["digest", "pause"]
LimitSource = Literal["config", "window", "default"]
ANSWER_PART, ANSWER_TOKENS = 5, 32_000
"""A fifth of a model's window is left for its answer, and at most this many tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRules:
    """The settings of `[compaction]`, for one session."""

    threshold: int = 100_000
    """Tokens; 0 never compacts automatically."""
    limit: int = 125_000
    """Tokens above which a request does not fit."""
    limit_source: LimitSource = "default"
    """Where the limit comes from: `[compaction]`, the known window of the model, or nowhere."""
    keep_recent: int = 3
    """How many of the last turns are kept word for word."""
    on_failure: OnFailure = "digest"

    @property
    def off(self) -> bool:
        """Whether a context is made shorter only when a person asks for it."""
        return not self.threshold and not self.limit

    def within(self, window: int | None) -> CompactionRules:
        """Return these rules for a model with this window; None if the window is not known."""
        if self.limit or not self.threshold:
            return replace(self, limit_source="config")
        if window is None:
            return replace(self, limit=self.threshold + self.threshold // 4, limit_source="default")
        limit = window - min(window // ANSWER_PART, ANSWER_TOKENS)
        return replace(self, threshold=min(self.threshold, limit * 4 // 5), limit=limit, limit_source="window")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a context is, above which size it is made shorter, and what does not fit at all."""

    size: int
    threshold: int
    limit: int

    @property
    def goal(self) -> int:
        """The size to reach by making it shorter."""
        return self.threshold // 2


def sizes(session: Session, rules: CompactionRules, *, unmeasured: int = 0) -> Sizes:
    """Return the sizes by the settings and by what the model has refused. A limit of 0 is none."""
    limit, threshold = rules.limit, rules.threshold or rules.limit
    if session.refused_tokens and not rules.off:
        refused = session.refused_tokens - 1
        limit = min(limit or refused, refused)
        threshold = min(threshold or limit, limit * 4 // 5)
    if unmeasured > limit // 2:
        unmeasured = 0  # such a limit is meant for the conversation alone
    return Sizes(session.size + unmeasured, min(threshold, limit), limit)
