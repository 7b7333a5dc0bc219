"""What the model sees of a session, as it changes in the fold (`session_fold.py`): more messages, fewer, or others."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.domain.chapter import Chapter
from holdfast.domain.events.session import ModelInterrupted, TurnResumed
from holdfast.domain.history import History, Message
from holdfast.domain.session import Session
from holdfast.domain.text import duration


def shorter(session: Session, visible: History, tokens: int) -> Session:
    """The model sees less: a request that was refused as too long may be tried again."""
    turn = session.turn and replace(session.turn, failed=None)
    return replace(session, visible=visible, counted_tokens=tokens, counted=len(visible), turn=turn)


def seen_anew(session: Session) -> Session:
    """Nobody has counted what the model sees from now on."""
    whole = session.chapter.opened is None and session.chapter.summary is None and not session.chapter.trims
    visible = None if whole else session.made_visible()
    return replace(session, visible=visible, counted_tokens=session.fixed_tokens, counted=0)


def with_messages(session: Session, *messages: Message) -> Session:
    """More messages, which the model sees."""
    if session.visible is None:
        return replace(session, messages=session.messages.extended(*messages))
    longer = session.messages.extended(*messages)
    return replace(session, messages=longer, visible=session.visible.extended(*messages))


def with_count(session: Session, tokens: int) -> Session:
    """The provider counted all that the model has seen so far; 0 when it does not say."""
    if tokens == 0:
        return session
    refused = 0 if tokens >= session.refused_tokens else session.refused_tokens
    fixed = session.fixed_tokens if tokens >= session.fixed_tokens // 2 else 0  # else this model does not count them
    return replace(
        session, counted_tokens=tokens, counted=len(session.seen), refused_tokens=refused, fixed_tokens=fixed
    )


def with_chapter(session: Session, chapter: Chapter) -> Session:
    """The session with this as its open chapter."""
    return replace(session, chapters=(*session.chapters[:-1], chapter))


def current_step(session: Session) -> int:
    """The step of the open turn; 0 before the first, and when no turn is open."""
    return 0 if session.turn is None else session.turn.step


def interrupted_note(event: ModelInterrupted) -> str:
    """What the model is told about it."""
    if not event.text:
        return f"Your answer was cut before its first word: {event.reason}."
    return f"Your answer was cut: {event.reason}. So far you had said:\n{event.text}"


def resume_note(event: TurnResumed) -> str:
    """What the model is told about it."""
    return f"You were interrupted ({event.reason}) and nothing was done for {duration(event.away_ms)}. Go on."
