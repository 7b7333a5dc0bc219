"""Cards: work on the board, and the runs at it, as the fold of their events.

A card with its runs is one stream. A run owns a session from its first moment: the one that it resumes,
or a new one. Rules: `card_rules.py` (what people may ask), `dispatch.py` (what the dispatcher does).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, assert_never

import msgspec
from msgspec.structs import replace

from holdfast.domain.card_number import card_label
from holdfast.domain.events import Record
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.card import (
    BlockKind,
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
    RunAssigned,
    RunFinished,
    RunHeartbeat,
    RunReminded,
    RunStarted,
)
from holdfast.domain.events.parts import EventRef, NotifyChoice, Rights

NEVER = EventRef(0, 0)
EDITABLE = (
    "title",
    "body",
    "profile",
    "workspace",
    "priority",
    "resume",
    "max_runtime_ms",
    "max_attempts",
    "tell",
    "node",
)


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
    """A comment on a card."""

    comment: str
    text: str
    by: Actor
    happened: EventRef


class Run(msgspec.Struct, frozen=True):
    """One attempt."""

    started: RunStarted
    at: EventRef
    finished: RunFinished | None = None
    ended: EventRef | None = None
    reminded: bool = False
    note: str = ""

    @property
    def number(self) -> int:
        """From 1."""
        return self.started.run


class Card(msgspec.Struct, frozen=True):
    """All that the rules need to know of one card, at one version."""

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
    tell: NotifyChoice = "default"
    node: str = ""
    """The name or label of the nodes on which it may run; empty is any."""
    assigned: str = ""
    """The node that is to start its next run; empty if none was chosen."""
    parents: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    status: CardStatus = "triage"
    moved: EventRef = NEVER
    reason: str = ""
    """Why it is in its column."""
    block: CardBlocked | None = None
    scheduled_at: int | None = None
    comments: tuple[Comment, ...] = ()
    runs: tuple[Run, ...] = ()
    fresh_next: bool = False
    """The next run is to begin with a new session."""
    attempts: int = 0
    """How many attempts were used up since a person last changed the card."""
    failures: int = 0
    """Failures of the infrastructure in a row."""
    again_at: int | None = None
    completed: CardCompleted | None = None
    workspace_removed: bool = False
    """Whether it was archived since its last run, so that its workspace may have been removed."""

    @property
    def exists(self) -> bool:
        """Whether it was created."""
        return self.version > 0

    @property
    def number(self) -> int:
        """Its number; 0 until the store has created it."""
        return 0 if self.created is None else self.created.number

    @property
    def label(self) -> str:
        """How people name it: `HF-118`."""
        return card_label(self.number, self.id)

    @property
    def rights(self) -> Rights | None:
        """What limits its workers besides their profile, when an agent created it."""
        return None if self.created is None else self.created.rights

    @property
    def run(self) -> Run | None:
        """The run that is not over, if there is one."""
        last = self.runs[-1] if self.runs else None
        return last if last is not None and last.finished is None else None


def fold_card(card: Card, records: Iterable[Record]) -> Card:
    """Return the card after these records."""
    for record in records:
        if record.version != card.version + 1:
            raise ValueError(f"{record.stream}: version {record.version} does not follow {card.version}")
        card = evolve_card(card, record.event, EventRef(record.version, record.at))  # type: ignore[arg-type]
    return card


def block_words(kind: BlockKind) -> str:
    """Return the kind of a block as people read it: `needs input`."""
    return kind.replace("_", " ")


class CardPosition(NamedTuple):
    """The column of a card, and why it is there."""

    status: CardStatus
    reason: str = ""
    block_kind: BlockKind | None = None
    scheduled_at: int | None = None


def position_after(event: CardEvent, status: CardStatus) -> CardPosition | None:
    """Return the column into which an event puts a card that is in `status`; None when the card stays there."""
    match event:
        case CardCreated():
            return CardPosition(event.status)
        case CardMoved():
            at = event.at if event.status == "scheduled" else None
            return CardPosition(event.status, event.reason, scheduled_at=at)
        case CardBlocked():
            return CardPosition("blocked", event.reason, event.block_kind)
        case CardUnblocked():
            return CardPosition("ready", event.reason)
        case CardCompleted():
            return CardPosition("done", event.summary)
        case RunStarted():
            return CardPosition("running")
        case RunFinished() if status == "running":
            return CardPosition("ready", event.reason)
        case _:
            return None


def evolve_card(card: Card, event: CardEvent, happened: EventRef) -> Card:
    """Return the card after one event; the snapshot before stays as it is."""
    position = position_after(event, card.status)
    card = replace(card, version=happened.version, updated_at=happened.at)
    if position is not None:
        card = replace(
            card,
            status=position.status,
            reason=position.reason,
            moved=happened,
            block=event if isinstance(event, CardBlocked) else None,
            scheduled_at=position.scheduled_at,
            assigned="",
        )
    match event:
        case CardCreated():
            return _created(card, event, happened)
        case CardEdited():
            changes = {name: value for name in EDITABLE if (value := getattr(event, name)) is not None}
            return replace(card, **changes)
        case CardCommented():
            comment = Comment(event.comment, event.text, event.by, happened)
            return replace(card, comments=(*card.comments, comment))
        case CardLinked(parent=parent):
            return replace(card, parents=(*card.parents, parent))
        case CardUnlinked(parent=parent):
            return replace(card, parents=_without(card.parents, parent))
        case CardFollowed(session=session, following=following):
            return replace(card, followers=_without(card.followers, session) + (session,) * following)
        case CardMoved(status=status):
            return replace(card, workspace_removed=card.workspace_removed or status == "archived")
        case CardBlocked():
            return card
        case CardUnblocked():
            return replace(card, fresh_next=event.fresh, attempts=0, failures=0, again_at=None)
        case CardCompleted():
            return replace(card, completed=event)
        case RunStarted():
            runs = (*card.runs, Run(event, happened))
            return replace(card, runs=runs, fresh_next=False, workspace_removed=False)
        case RunAssigned():
            return replace(card, assigned=event.node)
        case RunReminded():
            return _with_open_run(card, replace(_open_run(card), reminded=True))
        case RunHeartbeat(note=note):
            return _with_open_run(card, replace(_open_run(card), note=note))
        case RunFinished():
            return _run_finished(card, event, happened)
        case _ as never:
            assert_never(never)


def _created(card: Card, event: CardCreated, happened: EventRef) -> Card:
    changes = {name: getattr(event, name) for name in EDITABLE}
    card = replace(card, created=event, created_at=happened.at, board=event.board, **changes)
    followers = (event.session,) if event.session else ()
    return replace(card, parents=tuple(event.parents), followers=followers)


def _run_finished(card: Card, event: RunFinished, happened: EventRef) -> Card:
    infrastructure = event.retry_at is not None
    return replace(
        _with_open_run(card, replace(_open_run(card), finished=event, ended=happened)),
        attempts=card.attempts + event.uses_attempt,
        failures=card.failures + 1 if infrastructure and not event.progress else int(infrastructure),
        again_at=event.retry_at,
    )


def _open_run(card: Card) -> Run:
    run = card.run
    if run is None:
        raise ValueError(f"card {card.id}: an event of a run, but no run is open")
    return run


def _with_open_run(card: Card, run: Run) -> Card:
    return replace(card, runs=(*card.runs[:-1], run))


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(known for known in names if known != name)
