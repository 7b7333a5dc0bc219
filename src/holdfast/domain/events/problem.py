"""Why something failed: every code that there is, whether trying again may help, and what a card does about it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from holdfast.domain.events.parts import EventPart

ProblemCode = Literal[
    "network",
    "provider_down",
    "rate_limit",
    "quota",
    "bad_answer",
    "no_answer",
    "cut_by_length",
    "context_too_long",
    "refused",
    "rejected",
    "wrong_key",
    "no_key",
    "unknown_model",
    "unknown_profile",
    "unknown_driver",
    "step_limit",
    "token_limit",
    "time_limit",
    "summary_empty",
    "summary_timeout",
    "interrupted",
    "agent_failed",
    "agent_missing",
    "agent_login",
    "agent_unfit",
    "demo_failed",
    "demo_crashed",
    "internal",
]
Failure = Literal[
    "", "crash", "timeout", "budget", "quota", "provider", "network", "frozen", "lost", "left_without_a_word"
]
"""What a run of a card failed with."""
CardReaction = Literal["retry_later", "block", "use_attempt"]
"""A failure of the infrastructure is tried again later and costs no attempt; what only a person can change blocks the
card; all else uses up one of its attempts."""


class Handling(NamedTuple):
    """What is done about a problem."""

    retryable: bool
    """Whether the same request may succeed when it is made again."""
    on_card: CardReaction
    failure: Failure


HANDLING: dict[ProblemCode, Handling] = {
    "network": Handling(True, "retry_later", "network"),
    "provider_down": Handling(True, "retry_later", "network"),
    "rate_limit": Handling(True, "retry_later", "network"),
    "quota": Handling(False, "retry_later", "quota"),
    "bad_answer": Handling(True, "retry_later", "network"),
    "no_answer": Handling(False, "retry_later", "network"),
    "cut_by_length": Handling(False, "use_attempt", "crash"),
    "context_too_long": Handling(False, "block", "provider"),
    "refused": Handling(False, "block", "provider"),
    "rejected": Handling(False, "block", "provider"),
    "wrong_key": Handling(False, "block", "provider"),
    "no_key": Handling(False, "block", "provider"),
    "unknown_model": Handling(False, "block", "provider"),
    "unknown_profile": Handling(False, "block", "provider"),
    "unknown_driver": Handling(False, "block", "provider"),
    "step_limit": Handling(False, "use_attempt", "budget"),
    "token_limit": Handling(False, "use_attempt", "budget"),
    "time_limit": Handling(False, "use_attempt", "budget"),
    "summary_empty": Handling(False, "use_attempt", "crash"),
    "summary_timeout": Handling(False, "use_attempt", "crash"),
    "interrupted": Handling(False, "use_attempt", "crash"),
    "agent_failed": Handling(False, "use_attempt", "crash"),
    "agent_missing": Handling(False, "block", "provider"),
    "agent_login": Handling(False, "block", "provider"),
    "agent_unfit": Handling(False, "block", "provider"),
    "demo_failed": Handling(False, "use_attempt", "crash"),
    "demo_crashed": Handling(False, "retry_later", "crash"),
    "internal": Handling(False, "retry_later", "crash"),
}


class Problem(EventPart, frozen=True):
    """Why something failed, in words for a person."""

    code: ProblemCode
    message: str
    hint: str = ""
    after_ms: int | None = None
    """How long the provider asks to wait."""
