"""Which rows a read is about: filters, and where a page begins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionCursor:
    """Where a page of the list begins: after the session `id` that was updated at `at`, pinned ones first."""

    at: int = 2**62
    id: str = ""
    pinned: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; what is empty fits everything."""

    kind: str = ""
    state: str = ""
    session: str = ""
    text: str = ""
    since: int = 0
    ended: int = 0
    """Only what ended at this moment or later."""
    foreground: bool = False
    """Also the commands that a turn waits or waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFilter:
    """Which cards; what is empty fits everything."""

    board: str = ""
    status: str = ""
    profile: str = ""
    text: str = ""
    archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartQuery:
    """Where there is room for a run."""

    boards: list[str]
    profiles: list[str]
    limit: int
    exclude: list[str]
    """Cards that were tried already."""
