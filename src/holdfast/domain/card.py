"""Cards: work on the board, and the runs at it, as the fold of their events.

A card is one stream, its runs stand in it. A run owns a session from its first moment: the one that it resumes,
or a new one. Rules: `card_rules.py` (what people may ask), `dispatch.py` (what the dispatcher does).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from holdfast.domain.events.actor import Actor
from holdfast.domain.events.card import (
    CardBlocked,
    CardCommented,
    CardCompleted,
    CardCreated,
    CardEdited,
    CardEvent,
    CardFollowed,
    CardLinked,
    CardMoved,
    CardStatus,
    CardUnblocked,
    CardUnlinked,
    ResumePolicy,
    RunFinished,
    RunHeartbeat,
    RunReminded,
    RunStarted,
)
from holdfast.domain.events.parts import EventRef, Rights

NEVER = EventRef(0, 0)
EDITABLE = ("title", "body", "profile", "workspace", "priority", "resume", "max_runtime_ms", "max_attempts")


class Board(msgspec.Struct, frozen=True, gc=False):
    """A board. Its name is its id."""

    id: str
    title: str
    created_at: int
    version: int
    paused_by: str = ""
    archived: bool = False


# --- the fold -----------------------------------------------------------------------------------


class Comment(msgspec.Struct, frozen=True, gc=False):
    """What somebody said about a card."""

    comment: str
    text: str
    by: Actor
    happened: EventRef


@dataclass(slots=True)
class Run:
    """One attempt."""

    started: RunStarted
    at: EventRef
    finished: RunFinished | None = None
    ended: EventRef | None = None
    nudged: bool = False
    note: str = ""

    @property
    def number(self) -> int:
        """From 1."""
        return self.started.run


@dataclass(slots=True)
class Card:
    """All that the rules need to know of one card."""

    id: str
    version: int = 0
    updated_at: int = 0
    created: CardCreated | None = None
    created_at: int = 0
    board: str = ""
    title: str = ""
    body: str = ""
    profile: str = ""
    workspace: str = "scratch"
    priority: int = 0
    resume: ResumePolicy | None = None
    max_runtime_ms: int | None = None
    max_attempts: int | None = None
    parents: list[str] = field(default_factory=list)
    followers: list[str] = field(default_factory=list)
    status: CardStatus = "triage"
    moved: EventRef = NEVER
    reason: str = ""
    """Why it stands where it stands."""
    block: CardBlocked | None = None
    scheduled_at: int | None = None
    comments: list[Comment] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    fresh_next: bool = False
    """Somebody wants a fresh worker."""
    attempts: int = 0
    """Used up since a person touched it last."""
    failures: int = 0
    """Failures of the infrastructure in a row."""
    again_at: int | None = None
    completed: CardCompleted | None = None
    workspace_removed: bool = False
    """It was archived since its last run, and its workspace may have been taken away with that."""

    @property
    def exists(self) -> bool:
        """Whether it was created."""
        return self.version > 0

    @property
    def rights(self) -> Rights | None:
        """What limits its workers besides their profile, when an agent created it."""
        return None if self.created is None else self.created.rights

    @property
    def run(self) -> Run | None:
        """The open one."""
        last = self.runs[-1] if self.runs else None
        return last if last is not None and last.finished is None else None


def evolve_card(card: Card, event: CardEvent, happened: EventRef) -> None:
    """Apply one event, in place like every fold."""
    card.version, card.updated_at = happened.version, happened.at
    match event:
        case CardCreated():
            card.created, card.created_at = event, happened.at
            card.board, card.title, card.body, card.profile = event.board, event.title, event.body, event.profile
            card.workspace, card.priority, card.resume = event.workspace, event.priority, event.resume
            card.max_runtime_ms, card.max_attempts = event.max_runtime_ms, event.max_attempts
            card.parents, card.followers = list(event.parents), [event.session] if event.session else []
            _stands(card, event.status, "", happened)
        case CardEdited():
            for name in EDITABLE:
                if (value := getattr(event, name)) is not None:
                    setattr(card, name, value)
        case CardCommented():
            card.comments.append(Comment(event.comment, event.text, event.by, happened))
        case CardLinked(parent=parent):
            card.parents.append(parent)
        case CardUnlinked(parent=parent):
            card.parents = [known for known in card.parents if known != parent]
        case CardFollowed(session=session, following=following):
            card.followers = [known for known in card.followers if known != session] + [session] * following
        case CardMoved():
            _stands(card, event.status, event.reason, happened)
            card.scheduled_at = event.at if event.status == "scheduled" else None
            card.workspace_removed |= event.status == "archived"
        case CardBlocked():
            _stands(card, "blocked", event.reason, happened)
            card.block = event
        case CardUnblocked():
            _stands(card, "ready", event.reason, happened)
            card.fresh_next = event.fresh
            card.attempts = card.failures = 0
            card.again_at = None
        case CardCompleted():
            _stands(card, "done", event.summary, happened)
            card.completed = event
        case RunStarted():
            _stands(card, "running", "", happened)
            card.runs.append(Run(event, happened))
            card.fresh_next = card.workspace_removed = False
        case RunReminded():
            _open(card).nudged = True
        case RunHeartbeat(note=note):
            _open(card).note = note
        case RunFinished():
            run = _open(card)
            run.finished, run.ended = event, happened
            card.attempts += event.uses_attempt
            infrastructure = event.retry_at is not None
            card.failures = card.failures + 1 if infrastructure and not event.progress else int(infrastructure)
            card.again_at = event.retry_at
            if card.status == "running":
                _stands(card, "ready", event.reason, happened)
        case _ as never:
            assert_never(never)


def _stands(card: Card, status: CardStatus, reason: str, happened: EventRef) -> None:
    card.status, card.reason, card.moved = status, reason, happened
    if status != "blocked":
        card.block = None


def _open(card: Card) -> Run:
    run = card.run
    if run is None:
        raise ValueError(f"card {card.id}: an event of a run, but no run is open")
    return run
