"""A fork is a copy of the whole conversation, whatever else was done to its parent in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.domain.commands import (
    ArchiveSession,
    CompactSession,
    PinSession,
    RenameSession,
    RestoreSession,
    SetResetPolicy,
)
from holdfast.domain.events import Record
from holdfast.domain.events.chapter import (
    ResetPolicy,
    ResetPostponed,
    SummaryFailed,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.events.external_agent import DriverOutputRead
from holdfast.domain.events.run_binding import RunBound, RunReleased
from holdfast.domain.events.session import TurnBackgrounded
from holdfast.domain.history import AgentMessage, UserMessage
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from holdfast.domain.session_fork import fork
from tests.actors import person
from tests.domain.book import PROBLEM, Book

FORK = "fedcba9876543210"


def forked(book: Book) -> Session:
    pairs = fork(book.records, session=FORK, title="fork", by=person("ann"), now=book.now)
    stream = f"session/{FORK}"
    return fold(
        Session(FORK),
        [Record(seq=n, stream=stream, version=n, at=at, event=event) for n, (at, event) in enumerate(pairs, 1)],
    )


def said(session: Session) -> list[str]:
    return [message.text for message in session.messages if isinstance(message, UserMessage | AgentMessage)]


def _archived(book: Book) -> None:
    book.tell(ArchiveSession())
    book.tell(RestoreSession())


def _summary_requested(book: Book) -> None:
    book.tell(CompactSession())
    book.write(SummaryStarted(covers_turn=1, attempt=1, model="m", tokens=1, reason="long"))
    book.write(SummaryFailed(covers_turn=1, attempt=1, problem=PROBLEM, retry_at=None))


def _hand_over(book: Book) -> None:
    book.write(SummaryStarted(covers_turn=1, attempt=1, model="m", tokens=1, reason="reset", purpose="hand_over"))
    book.write(
        SummaryWritten(
            covers_turn=1,
            summary="in short",
            source="model",
            model="m",
            tokens_before=2,
            tokens_after=1,
            reason="reset",
            purpose="hand_over",
        )
    )


def _worked_on_a_card(book: Book) -> None:
    book.write(RunBound(card="c0ffee01", run=1, cwd="/w"))
    book.write(RunReleased(card="c0ffee01", run=1))


BETWEEN: dict[str, Callable[[Book], object]] = {
    "archived": _archived,
    "given a rule for resets": lambda book: book.tell(SetResetPolicy(policy=ResetPolicy(mode="none"))),
    "its reset was postponed": lambda book: book.write(
        ResetPostponed(rule="idle", due_at=1, until=None, next_check=2, blockers=[])
    ),
    "pinned": lambda book: book.tell(PinSession()),
    "renamed": lambda book: book.tell(RenameSession(title="new")),
    "a summary failed": _summary_requested,
    "a summary for a reset": _hand_over,
    "a run of a card": _worked_on_a_card,
    "the output of its driver was read": lambda book: book.write(DriverOutputRead(task="t", offset=1, owed=[])),
}


@pytest.mark.parametrize("between", BETWEEN)
def test_a_fork_has_all_turns_whatever_was_done_between_them(between: str) -> None:
    book = Book("one").begin().answer("first")
    book.finish()
    BETWEEN[between](book)
    book.say("two")
    book.begin().answer("second")
    book.finish()
    copy = forked(book)
    assert said(copy) == ["one", "first", "two", "second"]
    assert (copy.turns, copy.archived, copy.pinned, copy.title, copy.run) == (2, False, False, "fork", 0)


def test_a_fork_has_the_rest_of_a_turn_that_was_put_in_the_background() -> None:
    book = Book("one").begin()
    book.write(TurnBackgrounded(turn=1, task="0123456789abcdef", by=person("ann")))
    book.answer("first")
    book.finish()
    assert said(forked(book)) == ["one", "first"]
