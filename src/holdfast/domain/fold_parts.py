"""Parts of the fold that `session_fold.py` and `turn_fold.py` share: a table, and changes of the model's view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from holdfast.domain.chapter import Chapter
from holdfast.domain.events.actor import Actor
from holdfast.domain.events.parts import Event, EventRef
from holdfast.domain.history import History, Message, Note, UserMessage
from holdfast.domain.queue import QueuedInput
from holdfast.domain.session import Session, is_person_active

E = TypeVar("E", bound=Event)
Evolve = Callable[[Session, E, EventRef], Session]
"""Returns the session after an event of this kind, apart from its version and the time of its last event."""


class FoldTable(dict[type[Event], Evolve[Any]]):
    """Functions by the kind of event that they fold."""

    def on(self, *kinds: type[E]) -> Callable[[Evolve[E]], Evolve[E]]:
        """Decorate the function for these kinds."""

        def register(evolve: Evolve[E]) -> Evolve[E]:
            self.update(dict.fromkeys(kinds, evolve))
            return evolve

        return register


def with_visible(session: Session, visible: History, tokens: int) -> Session:
    """Return the session after the model's view was made shorter, so that a refused request may be tried again."""
    turn = session.turn and replace(session.turn, failed=None)
    return replace(session, visible=visible, counted_tokens=tokens, counted=len(visible), turn=turn)


def recompute_visible(session: Session) -> Session:
    """Return the session with the model's view computed again; the provider has not counted it yet."""
    whole = session.chapter.opened is None and session.chapter.summary is None and not session.chapter.trims
    visible = None if whole else session.compute_visible()
    return replace(session, visible=visible, counted_tokens=session.fixed_tokens, counted=0)


def added(session: Session, messages: Sequence[Message]) -> tuple[History, History | None]:
    """Return the session's `messages` and `visible` with more messages at their end."""
    visible = None if session.visible is None else session.visible.extended(messages)
    return session.messages.extended(messages), visible


def with_note(session: Session, turn: int, text: str) -> Session:
    """Return the session with one more note, which the model sees."""
    messages, visible = added(session, [Note(turn, text, current_step(session))])
    return replace(session, messages=messages, visible=visible)


def with_count(session: Session, tokens: int) -> Session:
    """Return the session after the provider counted its tokens; 0 when the provider does not say."""
    if tokens == 0:
        return session
    refused = 0 if tokens >= session.refused_tokens else session.refused_tokens
    fixed = session.fixed_tokens if tokens >= session.fixed_tokens // 2 else 0  # else this model does not count them
    return replace(
        session, counted_tokens=tokens, counted=len(session.visible_history), refused_tokens=refused, fixed_tokens=fixed
    )


def with_activity(session: Session, by: Actor, here: EventRef) -> Session:
    """Return the session after an act; an act of a person postpones its reset."""
    if not is_person_active(by, begun=session.first_input is not None):
        return session
    return replace(session, last_active=here, postponed=None)


def with_chapter(session: Session, chapter: Chapter) -> Session:
    """Return the session with this as its open chapter."""
    return replace(session, chapters=(*session.chapters[:-1], chapter))


def input_messages(taken: Sequence[QueuedInput], turn: int, *, step: int) -> list[Message]:
    """Return what the model reads of the inputs that a turn took after this step."""
    return [
        Note(turn, queued.event.text, step)
        if queued.event.source == "task"
        else UserMessage(turn, queued.event.text, step)
        for queued in taken
    ]


def current_step(session: Session) -> int:
    """Return the step of the open turn; 0 before the first, and when no turn is open."""
    return 0 if session.turn is None else session.turn.step
