"""`decide_card`: what a command means for a card as it is now. Events out, or a clear refusal.

Every command that takes a running card away from its worker ends the run first, in the same append: from then on what
the worker reports about the card is ignored.
"""

from __future__ import annotations

from typing import assert_never

from holdfast.domain.card import Board, Card, block_words
from holdfast.domain.commands import (
    ArchiveBoard,
    ArchiveCard,
    BlockCard,
    BoardCommand,
    CardCommand,
    CommentCard,
    CompleteCard,
    CreateBoard,
    EditCard,
    FollowCard,
    LinkCard,
    MoveCard,
    PauseBoard,
    ResumeBoard,
    RetryCard,
    StopCard,
    UnblockCard,
    UnlinkCard,
)
from holdfast.domain.errors import Conflict, NotFound, Rejected
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.card import (
    BoardArchived,
    BoardCreated,
    BoardEvent,
    BoardPaused,
    BoardResumed,
    CardBlocked,
    CardCommented,
    CardCompleted,
    CardEdited,
    CardEvent,
    CardFollowed,
    CardLinked,
    CardMoved,
    CardStatus,
    CardUnblocked,
    CardUnlinked,
    RunFinished,
)
from holdfast.domain.text import duration

BY_HAND: tuple[CardStatus, ...] = ("triage", "todo", "scheduled", "ready", "review")


def decide_card(card: Card, command: CardCommand, *, id: str, by: Actor, now: int) -> list[CardEvent]:
    """Return the events that the command causes. `id` is the command's id."""
    if not card.exists:
        raise NotFound(f"There is no card {card.id}.", hint="`holdfast card list` lists them.")
    if card.status == "archived" and not isinstance(command, RetryCard | MoveCard | CommentCard):
        raise Conflict("It is archived.", hint=f"`holdfast card retry {card.label}` restores it.")
    match command:
        case EditCard():
            return [_edit(card, command, by)]
        case CommentCard(text=text):
            return [comment(card, text, id, by)]
        case LinkCard(parent=parent):
            if parent == card.id:
                raise Rejected("A card cannot wait for itself.")
            if parent in card.parents:
                raise Conflict("It already waits for that card.")
            return [CardLinked(card=card.id, parent=parent, by=by)]
        case UnlinkCard(parent=parent):
            if parent not in card.parents:
                raise Conflict("It does not wait for that card.")
            return [CardUnlinked(card=card.id, parent=parent, by=by)]
        case FollowCard(session=session, following=following):
            return [CardFollowed(card=card.id, session=session, following=following, by=by)]
        case MoveCard():
            return _move(card, command, by, now)
        case BlockCard(reason=reason, kind=kind):
            if card.status in ("blocked", "done"):
                raise Conflict(f"It is {card.status} already: {card.reason}")
            block = CardBlocked(card=card.id, block_kind=kind, reason=reason, by=by)
            return [*end_run(card, f"blocked by {by}"), block]
        case UnblockCard(text=text, fresh=fresh):
            if card.status != "blocked":
                raise _not_blocked(card, now)
            return [*_said(card, text, id, by), CardUnblocked(card=card.id, by=by, fresh=fresh)]
        case RetryCard(text=text, fresh=fresh):
            if card.run is not None:
                raise Conflict(
                    "The card is running.", hint=f"`holdfast card stop {card.label}` first, or comment on it."
                )
            again = CardUnblocked(card=card.id, by=by, fresh=fresh, reason=f"{by} asked for another attempt")
            return [*_said(card, text, id, by), again]
        case StopCard(reason=reason):
            if card.run is None:
                raise Conflict("The card is not running, so there is nothing to stop.")
            why = f"stopped by {by}" + (f": {reason}" if reason else "")
            return [*end_run(card, why), CardBlocked(card=card.id, block_kind="needs_input", reason=why, by=by)]
        case CompleteCard(summary=summary):
            if card.status == "done":
                raise Conflict("It is done already.")
            return [
                *end_run(card, f"completed by {by}"),
                CardCompleted(card=card.id, summary=summary, by=by),
            ]
        case ArchiveCard():
            moved = CardMoved(card=card.id, status="archived", reason=f"archived by {by}", by=by)
            return [*end_run(card, f"archived by {by}"), moved]
        case _ as never:
            assert_never(never)


def decide_board(name: str, board: Board | None, command: BoardCommand, *, by: Actor, runs: bool) -> BoardEvent:
    """Return the event that a command about a board causes. `runs` is whether a card of the board is running."""
    if isinstance(command, CreateBoard):
        if board is not None:
            raise Conflict(f"Board {name} exists already.")
        return BoardCreated(board=name, title=command.title or name, by=by)
    if board is None:
        raise NotFound(f"There is no board {name[:80]!r}.", hint="`holdfast board list` lists them.")
    match command:
        case PauseBoard():
            if board.paused_by:
                raise Conflict(f"It is paused already, by {board.paused_by}.")
            return BoardPaused(board=name, by=by)
        case ResumeBoard():
            if not (board.paused_by or board.archived):
                raise Conflict("It is neither paused nor archived.")
            return BoardResumed(board=name, by=by)
        case ArchiveBoard():
            if board.archived:
                raise Conflict("It is archived already.")
            if runs:
                raise Conflict("Cards of this board are running.", hint="Stop them first.")
            return BoardArchived(board=name, by=by)
        case _ as never:
            assert_never(never)


def end_run(card: Card, reason: str) -> list[CardEvent]:
    """Return the end of an open run that its worker did not end; the caller adds what only the session knows."""
    run = card.run
    if run is None:
        return []
    return [RunFinished(card=card.id, run=run.number, outcome="stopped", reason=reason)]


def comment(card: Card, text: str, id: str, by: Actor) -> CardCommented:
    """Return the event of a comment."""
    if not text.strip():
        raise Rejected("The comment is empty.")
    return CardCommented(card=card.id, comment=id, text=text, by=by)


def _said(card: Card, text: str | None, id: str, by: Actor) -> list[CardEvent]:
    return [] if text is None else [comment(card, text, id, by)]


def _edit(card: Card, command: EditCard, by: Actor) -> CardEdited:
    given = {name: getattr(command, name) for name in command.__struct_fields__}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        raise Rejected("There is nothing to change.")
    if card.run is not None and given.keys() - {"priority", "max_runtime_ms", "max_attempts", "tell"}:
        raise Conflict("The card is running, and its worker has read it.", hint="Comment on it, or stop it first.")
    return CardEdited(card=card.id, by=by, **given)


def _move(card: Card, command: MoveCard, by: Actor, now: int) -> list[CardEvent]:
    if command.status not in BY_HAND:
        hint = "Use the commands to block, complete, archive or start it."
        raise Rejected(f"A card is not moved to {command.status} by hand.", hint=hint)
    if (command.status == "scheduled") != (command.at is not None):
        raise Rejected("`at` is only for the status `scheduled`, which needs it.")
    if command.at is not None and command.at <= now:
        raise Rejected("That time has passed.")
    if card.status == command.status and command.at is None:
        raise Conflict(f"It is in {card.status} already.")
    if card.run is not None and command.status == "ready":
        raise Conflict("The card is running.", hint=f"`holdfast card stop {card.label}` ends its run.")
    if card.status == "blocked":
        raise Conflict("It is blocked: " + card.reason, hint=f"`holdfast card unblock {card.label}`")
    moved = CardMoved(card=card.id, status=command.status, reason=f"moved by {by}", by=by, at=command.at)
    return [*end_run(card, f"moved to {command.status} by {by}"), moved]


def _not_blocked(card: Card, now: int) -> Conflict:
    if card.run is not None:
        running = duration(now - card.run.at.at)
        return Conflict(f"It is not blocked: it has been running for {running}. A comment reaches its worker.")
    return Conflict(
        f"It is not blocked; it has been {card.status} for {duration(now - card.moved.at)}.",
        hint=f"`holdfast card retry {card.label}` runs it again.",
    )


def follower_note(card: Card, event: CardEvent) -> str:
    """Return the note for sessions that follow a card; empty if the event is not for them."""
    match event:
        case CardBlocked(block_kind=kind, reason=reason):
            return f"Card {card.label} ({card.title}) is blocked ({block_words(kind)}): {reason}"
        case CardCompleted(summary=summary):
            return f"Card {card.label} ({card.title}) is done: {summary}"
        case RunFinished(outcome="failed" | "lost", reason=reason, run=run):
            return f"Run {run} of card {card.label} ({card.title}) failed: {reason}"
        case _:
            return ""
