"""How a turn is picked up that another worker left open: which events follow, what is repeated, what waits."""

from __future__ import annotations

import pytest

from holdfast.domain.commands import StopTurn
from holdfast.domain.events.session import (
    Effect,
    ModelInterrupted,
    ToolCallFinished,
    TurnResumed,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.history import Note
from holdfast.domain.next_step import CallModel, Finish, Partial, Rest, RunTool
from holdfast.domain.resume import Break, pick_up
from tests.actors import person
from tests.domain.book import LIMITS, Book, kinds
from tests.domain.history import check, check_ended

CRASHED = "the gateway was killed or crashed"


def asked() -> Book:
    book = Book("one").begin()
    book.ask()
    return book


def test_nothing_is_written_when_nothing_was_left_open() -> None:
    assert Book().resume() == ()
    assert Book("a message in the queue").resume() == ()


def test_promise_7_a_cut_answer_becomes_a_fact_and_the_step_is_tried_again() -> None:
    book = asked()
    assert book.resume(after_ms=5_000, partial=Partial("half", "hm")) == (
        ModelInterrupted(turn=1, step=1, text="half", thinking="hm", reason=CRASHED),
        TurnResumed(turn=1, attempt=1, interruption="crash", reason=CRASHED, away_ms=5_000),
    )
    assert book.next() == CallModel(1, 1, 2)


def test_the_model_learns_that_and_for_how_long_it_was_interrupted() -> None:
    book = asked()
    book.resume(after_ms=5_000, partial=Partial("half"))
    notes = [message.text for message in book.session.messages if isinstance(message, Note)]
    assert notes == [
        f"Your answer was interrupted: {CRASHED}. So far you had written:\nhalf",
        f"You were interrupted ({CRASHED}) for 5 s. Continue.",
    ]


def test_a_clean_shutdown_is_named_as_the_cause() -> None:
    book = asked().suspend()
    assert book.activity() == "suspended"
    resumed = book.resume()[-1]
    assert isinstance(resumed, TurnResumed)
    assert resumed.reason == "the gateway was shut down"
    assert book.activity() == "running"


def test_promise_7_a_started_effect_that_may_not_be_repeated_is_unknown() -> None:
    book = Book("one").begin().answer("", "t").start_call("1.1.0", "unsafe")
    finished = book.resume()[0]
    assert isinstance(finished, ToolCallFinished)
    assert (finished.outcome, finished.duration_ms) == ("unknown", 0)
    assert book.next() == CallModel(1, 2, 1)


def effect_of(book: Book) -> Effect | None:
    opened = book.session.open_call("1.1.0")
    assert opened is not None
    return opened.effect


@pytest.mark.parametrize("effect", ["pure", "idempotent", "keyed"])
def test_a_started_effect_that_may_be_repeated_is_run_again(effect: Effect) -> None:
    book = Book("one").begin().answer("", "t").start_call("1.1.0", effect)
    assert kinds(book.resume()) == ["TurnResumed"]
    assert isinstance(book.next(), RunTool)
    assert effect_of(book) == effect, "its intent is not written for a second time"


def test_a_call_that_was_not_started_is_simply_run() -> None:
    book = Book("one").begin().answer("", "t")
    assert kinds(book.resume()) == ["TurnResumed"]
    assert isinstance(book.next(), RunTool)
    assert effect_of(book) is None


# --- the budget -----------------------------------------------------------------------------------


def test_a_turn_that_gets_no_further_waits_for_a_person() -> None:
    book = asked()
    for attempt in range(1, LIMITS.resume_attempts + 1):
        resumed = book.resume()[-1]
        assert isinstance(resumed, TurnResumed)
        assert resumed.attempt == attempt
        book.ask()
    waiting = book.resume()
    assert kinds(waiting) == ["ModelInterrupted", "WaitOpened"]
    assert book.activity() == "waiting"
    assert book.next() == Rest()
    assert book.resume() == (), "the next start finds it waiting and leaves it so"


def test_progress_gives_the_budget_back() -> None:
    calls = 3 * LIMITS.resume_attempts
    book = Book("one").begin().answer("", *["t"] * calls)
    for number in range(calls):
        assert book.resume() == (TurnResumed(turn=1, attempt=1, interruption="crash", reason=CRASHED, away_ms=5_000),)
        book.start_call(f"1.1.{number}").finish_call(f"1.1.{number}")


def test_old_work_does_not_wake_up_by_itself() -> None:
    book = asked()
    opened = book.resume(after_ms=LIMITS.resume_age_ms + 1)[-1]
    assert isinstance(opened, WaitOpened)
    assert opened.wait == "4cb2b2696c1f"
    assert "1 h 0 min ago" in opened.reason
    assert book.next() == Rest()


def test_a_clock_that_was_set_back_makes_no_age() -> None:
    book = asked()
    resumed = book.resume(after_ms=-(10**9))[-1]
    assert isinstance(resumed, TurnResumed)
    assert resumed.away_ms == 0


def test_a_message_answers_the_wait_and_has_its_own_turn_afterwards() -> None:
    book = asked()
    book.resume(after_ms=10**9)
    message = book.say("go on")
    assert book.records[-1].event == WaitAnswered(turn=1, wait="4cb2b2696c1f", answer="resume", by=person("ann"))
    assert book.resume(after_ms=0) == (), "the worker that comes now was called, it resumes nothing"
    assert book.next() == CallModel(1, 1, 2)
    book.answer("here").finish()
    book.begin().answer("and here").finish()
    assert check_ended(book.records).turns[1].inputs == [message]


def test_an_answer_given_long_ago_does_not_wake_old_work_either() -> None:
    book = asked()
    book.resume(after_ms=10**9)
    book.say("go on")
    opened = book.resume(after_ms=10**9)[-1]
    assert isinstance(opened, WaitOpened)
    assert opened.wait == "d9d08415a809"
    check(book.records)


def test_an_interrupting_message_ends_a_turn_that_waits() -> None:
    book = asked()
    book.resume(after_ms=10**9)
    book.say("something else", "interrupt")
    step = book.next()
    assert isinstance(step, Finish)
    assert step.outcome == "stopped"


def test_old_work_that_was_stopped_ends_instead_of_waiting() -> None:
    book = asked()
    book.tell(StopTurn())
    assert kinds(book.resume(after_ms=10**9)) == ["ModelInterrupted"]
    assert isinstance(book.next(), Finish)


# --- how long nobody worked -----------------------------------------------------------------------

DAY = 24 * 3_600_000


@pytest.mark.parametrize("jump", [2 * 3_600_000, DAY, -DAY], ids=["a long command", "a day forward", "a day back"])
def test_the_last_sign_of_life_counts_and_not_the_last_event_nor_the_wall_clock(jump: int) -> None:
    book = asked()
    book.now += jump
    found = pick_up(book.session, Partial(), Break(3_000), now=book.now, limits=LIMITS)
    assert found[-1] == TurnResumed(turn=1, attempt=1, interruption="crash", reason=CRASHED, away_ms=3_000)


def test_an_event_after_the_last_sign_of_life_counts() -> None:
    book = asked()
    book.now += 2_000
    found = pick_up(book.session, Partial(), Break(9 * DAY), now=book.now, limits=LIMITS)
    assert found[-1] == TurnResumed(turn=1, attempt=1, interruption="crash", reason=CRASHED, away_ms=2_000)


def test_a_long_absence_waits_for_a_person_whatever_the_wall_clock_says() -> None:
    book = asked()
    book.now -= DAY
    found = pick_up(book.session, Partial(), Break(2 * 3_600_000), now=book.now, limits=LIMITS)
    assert isinstance(found[-1], WaitOpened)
    assert found[-1].reason == "it was interrupted 2 h 0 min ago, too long to be resumed automatically"


def test_a_command_that_worked_on_without_a_gateway_keeps_its_turn_young() -> None:
    book = asked()
    book.now += 2 * 3_600_000
    found = pick_up(book.session, Partial(), Break(7_000_000, command_ms=3_000), now=book.now, limits=LIMITS)
    assert found[-1] == TurnResumed(turn=1, attempt=1, interruption="crash", reason=CRASHED, away_ms=7_000_000)


def test_what_a_person_stopped_is_never_resumed() -> None:
    book = asked()
    book.tell(StopTurn())
    assert kinds(book.resume(partial=Partial("half"))) == ["ModelInterrupted"]
    assert book.next() == Finish(1, "stopped", "stopped by ann")
