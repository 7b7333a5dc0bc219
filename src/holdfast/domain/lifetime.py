"""When a command that a session started must end: with the call that waits for it, or with the session."""

from __future__ import annotations

from holdfast.domain.events.task import Lifetime
from holdfast.domain.session import Session


def why_over(session: Session, *, call: str, foreground: bool, lifetime: Lifetime, begun: bool) -> str:
    """Return why a command must end now, or never begin; empty while there is no reason.

    A command in the foreground ends when its call is not open any more, whatever its lifetime is; so does one that has
    not begun for its call. That is all that a turn ends: the command of the next turn has a call of its own.
    """
    ends_with_call = foreground or (bool(call) and not begun)
    if lifetime in ("persist", "until") and not ends_with_call:
        return ""
    if not session.exists:
        return "its session was deleted"
    if session.archived:
        return "its session was archived"
    return "its turn ended" if ends_with_call and session.open_call(call) is None else ""
