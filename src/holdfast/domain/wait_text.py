"""What an open wait means for a person who asks why nothing happens, and how it is answered."""

from __future__ import annotations

from holdfast.domain.events.session import WaitOpened
from holdfast.domain.text import duration
from holdfast.domain.turn_fold import KEEP_WAITING


def waiting_for(wait: WaitOpened, since: str, now: int) -> str:
    """Return the end of a sentence that begins with the turn. `since` is for how long it has waited."""
    match wait.purpose:
        case "resume":
            return f"has been waiting for a person for {since}: {wait.reason}. Send a message to continue, or stop it."
        case "question":
            answer = f"Answer with `holdfast answer {wait.wait} TEXT`."
            return f"has been waiting for an answer for {since}: {wait.reason} {answer}"
        case "compaction":
            again = f"`holdfast answer {wait.wait} 'try again'` or `holdfast answer {wait.wait} digest`"
            return f"has been waiting for a person for {since}: {wait.reason}. {again}."
        case "login":
            then = f"Then `holdfast answer {wait.wait} 'try again'`."
            return f"has been waiting for a log-in for {since}: {wait.reason} {then}"
        case "quota":
            again = f"`holdfast answer {wait.wait} 'try again'`"
            if wait.until is None:
                return f"has been waiting for a quota for {since}: {wait.reason} {again} continues it."
            left = duration(max(0, wait.until - now))
            stay = f"`holdfast answer {wait.wait} '{KEEP_WAITING}'` cancels that"
            return f"continues by itself in {left}: {wait.reason} {stay}, {again} continues it now."
        case "approval":
            left = f" Without an answer it is denied in {duration(max(0, wait.until - now))}." if wait.until else ""
            answer = f"`holdfast answer {wait.wait} --allow` or --deny."
            return f"has been waiting for an approval for {since}: {wait.reason} {answer}{left}"
        case "retry":
            left = duration(max(0, (wait.until or now) - now))
            return f"tries again in {left}: {wait.reason} Stop the turn to cancel."
