"""Stale background commands: alive, idle, and older than anybody would wait for. Only a report; nothing is stopped."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.domain.text import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The session that started a command, as it is now."""

    gone: bool = False
    archived: bool = False
    chapter_at: int = 0
    """When its chapter was opened; 0 for the first one."""
    max_age_ms: int = 24 * 3_600_000


def stale(*, started_at: int, age_ms: int, activity: str, detail: str, pinned: bool, owner: Owner | None) -> str:
    """Return why a command is stale; empty if it works, is in use, is pinned, is unknown or was started by a person."""
    if owner is None or pinned or activity not in ("idle", "waiting", "serving") or detail == "in use":
        return ""
    doing = " ".join(filter(None, (activity, detail)))
    if owner.gone:
        return f"{doing}, and its session was deleted"
    if owner.archived:
        return f"{doing}, and its session is archived"
    if age_ms >= owner.max_age_ms:
        return f"{doing}, and older than process_max_age ({duration(owner.max_age_ms)})"
    if started_at < owner.chapter_at:
        return f"{doing}, and it outlived the chapter that started it"
    return ""
