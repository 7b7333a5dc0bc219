"""How the parts that follow the log are doing, for `/healthz` and the doctor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class FollowerState:
    """How something that follows the log is doing."""

    name: str
    problem: str = ""
    """Why it cannot get on now; empty while all is well."""
    since: int = 0
    """Since when there is a problem, or none any more."""
    restarts: int = 0
    """How often it ended and was started again."""
