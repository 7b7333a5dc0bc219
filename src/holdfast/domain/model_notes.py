"""The notes by which the model learns what happened to its turn. The fold makes them, so a changed text changes old
sessions too. The results of calls that were cut are in `next_step.py` (`close_call`).
"""

from __future__ import annotations

from holdfast.domain.command import SessionMode
from holdfast.domain.events.session import ModelInterrupted, TurnFinished, TurnResumed, WaitAnswered
from holdfast.domain.text import duration


def interrupted_note(event: ModelInterrupted) -> str:
    """An answer was cut."""
    if not event.text:
        return f"Your answer was interrupted before its first word: {event.reason}."
    return f"Your answer was interrupted: {event.reason}. So far you had written:\n{event.text}"


def resumed_note(event: TurnResumed) -> str:
    """The turn continues after an interruption."""
    return f"You were interrupted ({event.reason}) for {duration(event.away_ms)}. Continue."


def paused_note(reason: str, event: WaitAnswered) -> str:
    """The turn was interrupted, waited for a person, and continues."""
    return f"You were paused: {reason}. {event.by} answered: {event.answer}."


def ended_note(event: TurnFinished) -> str:
    """The turn failed or was stopped."""
    return f"This turn {event.outcome}: {event.reason}"


def mode_note(mode: SessionMode) -> str:
    """A person chose what the agent may do at most; part of every request while it holds."""
    match mode:
        case "profile":
            return ""
        case "ask":
            return "A person is asked before each of your calls that changes something, and before each command."
        case "read":
            return (
                "This session is read only, as a person chose. Calls that change something, and commands, are not "
                "carried out. Do not try to get around that: read, answer, and say what you would change."
            )
