"""What the model sees, on the wire."""

from __future__ import annotations

import msgspec

from holdfast.domain.context_limits import LimitSource


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
    limit_source: LimitSource
    """Who says so: `config`, the `window` of the model with room for its answer, or nobody, which is `default`."""
    chapter: int
    covers: int
    """A summary stands in the place of the turns up to this one; 0 is none."""
    summary: str | None
    """`model`, or `digest` while there is no better one."""
    window: int | None
    """How many tokens the model can see at once; null when nobody knows."""
