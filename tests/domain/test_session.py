"""The fold: the same events always give the same session, and nothing else does."""

from __future__ import annotations

from typing import get_args

import pytest

from holdfast.domain.events import AnyEvent, Record, session_stream
from holdfast.domain.events.session import SessionEvent, ToolCallFinished, TurnResumed
from holdfast.domain.events.system import GatewayStopped
from holdfast.domain.history import AgentMessage, Note, ToolResult, UserMessage
from holdfast.domain.session import Session
from holdfast.domain.session_fold import SESSION_EVENTS, evolve, fold
from tests.domain.book import ID, Book


def busy_book() -> Book:
    book = Book("one").begin().answer("let me see", "t").start_call("1.1.0").finish_call("1.1.0")
    book.say("to the left", "steer")
    book.join()
    book.answer("there").finish()
    book.say("two")
    book.begin().fail().finish()
    return book


def test_the_model_sees_what_was_said_and_done_in_order() -> None:
    messages = busy_book().session.messages
    assert [type(message) for message in messages] == [
        UserMessage,
        AgentMessage,
        ToolResult,
        UserMessage,
        AgentMessage,
        UserMessage,
        Note,
    ]
    assert [message.turn for message in messages] == [1, 1, 1, 1, 1, 2, 2]


def test_folding_in_one_go_equals_folding_bit_by_bit() -> None:
    book = busy_book()
    again = Session(ID)
    for record in book.records:
        again = evolve(again, record)
    assert fold(Session(ID), book.records) == again == book.session


def test_the_activity_of_a_session() -> None:
    book = Book()
    assert book.activity() == "idle"
    book.say("one")
    assert book.activity() == "queued"
    book.begin()
    assert book.activity() == "running"
    book.suspend()
    assert book.activity() == "suspended"
    book.resume(after_ms=10**9)
    assert book.activity() == "waiting"


def test_the_last_turn_says_how_it_ended() -> None:
    last = busy_book().session.last_turn
    assert last is not None
    assert (last.number, last.outcome, last.problem and last.problem.code) == (2, "failed", "internal")


def test_every_event_of_a_session_has_a_function_in_the_fold() -> None:
    assert set(SESSION_EVENTS) == set(get_args(SessionEvent))


def test_a_gap_in_the_log_is_refused() -> None:
    book = Book("one")
    with pytest.raises(ValueError, match="does not follow"):
        fold(Session(ID), book.records[1:])


@pytest.mark.parametrize(
    "event",
    [
        GatewayStopped(pid=1, reason="bye"),
        TurnResumed(turn=1, attempt=1, interruption="crash", reason="x", away_ms=0),
    ],
)
def test_an_event_that_does_not_belong_here_is_refused(event: AnyEvent) -> None:
    book = Book()
    with pytest.raises((ValueError, TypeError), match=r"belong|no turn is open"):
        book.write(event)


def test_a_late_outcome_of_a_finished_turn_is_kept_as_a_message() -> None:
    """Repaired logs may hold one; a session must still fold."""
    book = Book()
    late = ToolCallFinished(turn=1, call="1.1.0", tool="t", outcome="unknown", output="", duration_ms=0)
    version = book.session.version + 1
    after = evolve(book.session, Record(seq=9, stream=session_stream(ID), version=version, at=1, event=late))
    assert isinstance(after.messages[-1], ToolResult)
