"""Tasks: one entry for each piece of background work, whatever does it; its end, its lifetime, and when it is stale.

A task is recorded when it starts, not when it ends, and is kept until it is pruned. Its stream
is `task/<id>`; a session only refers to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2s
from typing import assert_never

from holdfast.domain.card_number import card_label
from holdfast.domain.events.task import (
    CommandExited,
    CommandKilled,
    CommandLost,
    CommandNeverStarted,
    Lifetime,
    RunEnded,
    TaskEnd,
    TaskFinished,
    TaskKind,
    TaskOutcome,
    TaskStarted,
    TurnEnded,
)
from holdfast.domain.session import Session
from holdfast.domain.text import duration, shorten

NEVER_STARTED = "never started"
TITLE = 80
INLINE = 30_000
"""How many bytes of a command's output the model sees, and the result of the call that waited for it stores."""
PREVIEW = 200


def sandbox_in_words(started: TaskStarted) -> str:
    """Return a description of a command's sandbox, or why an agent's command has none; empty for a person's command."""
    spec = started.sandbox
    if spec is None:
        return f"It has no sandbox: {started.no_sandbox}." if started.no_sandbox else ""
    network = "with" if spec.network else "without"
    return f"It has a sandbox, {network} network: it can write to {', '.join(spec.writable) or 'nothing'} and its /tmp."


def end_evidence(end: TaskEnd) -> str:
    """Return in words how the end of a task is known, or why it is not."""
    match end:
        case CommandExited(evidence=evidence) | CommandKilled(evidence=evidence) | CommandLost(evidence=evidence):
            return evidence
        case CommandNeverStarted(hint=hint):
            return hint
        case TurnEnded(session=session, turn=turn):
            return f"turn {turn} of session {session}"
        case RunEnded(card=card, run=run, card_number=number):
            return f"run {run} of card {card_label(number, card)}"
        case _ as never:
            assert_never(never)


AGENT_CALL = "agent"
"""The call of a task that is the process of an external agent; no tool call has this id."""


def task_of_call(session: str, call: str) -> str:
    """Return the id of the task of a tool call. It is always the same, so that a repeated call finds its command."""
    return blake2s(f"{session}/{call}/1".encode(), digest_size=8).hexdigest()


def task_of_left(task: str) -> str:
    """Return the id of the task for the processes that a command left behind; it is always the same."""
    return blake2s(f"{task}/left".encode(), digest_size=8).hexdigest()


def task_title(text: str) -> str:
    """Return a title of one line."""
    return shorten(text, TITLE)


def command_outcome(*, code: int | None, signal: str, lost: str, stopped: str) -> tuple[TaskOutcome, str]:
    """Return the outcome of a command, and the reason in words.

    `stopped` says at whose request it was ended, if it was; `lost` says why it is not known how it ended, if it is not.
    """
    if lost:
        return "lost", f"{stopped}, and how it ended is not known: {lost}" if stopped else lost
    how = f"killed by {signal}" if signal else f"exit code {code}"
    if stopped:
        return "stopped", f"{stopped}: {how}"
    return ("done" if code == 0 else "failed"), how


def end_note(task: str, title: str, finished: TaskFinished, *, of: TaskKind) -> str:
    """Return the note about the end of a task for the session that started it."""
    word = "command" if of == "process" else "agent"
    lines = [f"The background {word} {task} ({title}) ended as {finished.outcome}: {finished.reason}."]
    if finished.summary:
        lines.append(f"It said: {finished.summary}")
    elif finished.preview:
        lines.append(f"Its output ends with: {finished.preview}")
    if finished.files:
        lines.append(f"Files changed: {', '.join(finished.files)}")
    lines.append(f"(`process log {task}` has all of it.)" if of == "process" else f"(Task {task}.)")
    return "\n".join(lines)


def why_over(session: Session, *, call: str, foreground: bool, lifetime: Lifetime, begun: bool) -> str:
    """Return why a command must end now, or never begin; empty while there is no reason.

    A command in the foreground ends when its call is no longer open, whatever its lifetime is; so does one that has
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
