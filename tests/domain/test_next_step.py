"""What comes next: the queue and its three modes, the end, and a stop in every phase."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.domain.commands import StopTurn
from holdfast.domain.events.run_binding import RunReleased
from holdfast.domain.events.session import ModelInterrupted, StopRequested, ToolCallFinished, TurnFinished
from holdfast.domain.history import UserMessage
from holdfast.domain.next_step import Begin, CallModel, Finish, Join, Partial, Rest, RunTool
from holdfast.domain.task import task_of_call
from tests.domain.book import PROBLEM, Book, cut_text, kinds
from tests.domain.history import check, check_ended


def test_a_session_without_a_message_rests() -> None:
    assert Book().next() == Rest()


def test_a_message_is_answered_and_the_turn_ends() -> None:
    book = Book("hello")
    assert book.next() == Begin(1, ["i1"])
    book.begin()
    assert book.next() == CallModel(1, 1, 1)
    book.answer("hi")
    assert book.next() == Finish(1, "done", "the agent had nothing more to do")
    book.finish()
    assert book.next() == Rest()
    assert check_ended(book.records).turns[0].text == "hi"


def test_tool_calls_are_all_done_before_the_model_is_asked_again() -> None:
    book = Book("hello").begin().answer("", "t", "t")
    step = book.next()
    assert isinstance(step, RunTool)
    assert step.call.call == "1.1.0"
    book.start_call("1.1.0").finish_call("1.1.0")
    step = book.next()
    assert isinstance(step, RunTool)
    assert step.call.call == "1.1.1"
    book.start_call("1.1.1").finish_call("1.1.1", "failed")
    assert book.next() == CallModel(1, 2, 1)


def test_queued_messages_get_a_turn_each_in_their_order() -> None:
    book = Book("one")
    book.begin()
    book.say("two")
    book.say("three")
    for _ in range(3):
        if book.session.turn is None:
            book.begin()
        book.answer("ok").finish()
    history = check_ended(book.records)
    assert [turn.inputs for turn in history.turns] == [["i1"], ["i2"], ["i3"]]


def test_what_steers_joins_after_the_calls_in_flight_all_at_once() -> None:
    book = Book("one").begin().answer("", "t").start_call("1.1.0")
    first, second = book.say("left", "steer"), book.say("no, right", "steer")
    book.say("later")
    assert isinstance(book.next(), RunTool)
    book.finish_call("1.1.0")
    assert book.join() == [first, second]
    assert book.next() == CallModel(1, 2, 1)


def test_a_steering_message_joins_even_after_the_last_answer() -> None:
    book = Book("one").begin().answer("done")
    book.say("one more thing", "steer")
    assert isinstance(book.next(), Join)
    book.join()
    assert book.next() == CallModel(1, 2, 1)


def test_what_steers_begins_a_turn_when_none_runs() -> None:
    book = Book()
    input = book.say("hello", "steer")
    assert book.next() == Begin(1, [input])


def test_an_interrupt_ends_the_turn_and_comes_before_the_queue() -> None:
    book = Book("one").begin()
    book.ask()
    book.say("queued")
    urgent = book.say("stop that", "interrupt")
    ended = book.finish(Partial("half a sen"))
    assert cut_text(ended) == "half a sen"
    assert ended[-1] == TurnFinished(turn=1, outcome="stopped", reason="interrupted by a message from ann")
    assert book.next() == Begin(2, [urgent])
    book.begin().answer("ok").finish()
    assert book.next() == Begin(3, ["i2"])


def test_a_failed_model_fails_the_turn_and_the_queue_stays() -> None:
    book = Book("one").begin().fail()
    waiting = book.say("two")
    assert book.next() == Finish(1, "failed", PROBLEM.message, PROBLEM)
    book.finish()
    assert book.next() == Begin(2, [waiting])


def test_a_worker_whose_run_is_over_adds_a_closing_message_and_nothing_more() -> None:
    book = Book("one").begin().answer("", "kanban_complete", "t").start_call("1.1.0")
    book.write(RunReleased(card="c0ffee01", run=1))
    book.finish_call("1.1.0")
    assert isinstance(book.next(), RunTool), "what was asked for with it is done"
    book.start_call("1.1.1").finish_call("1.1.1").answer("bye", "t")
    assert book.next() == Finish(1, "done", "its run of the card is over")
    ended = book.finish()
    assert [event.output for event in ended if isinstance(event, ToolCallFinished)] == [
        "Not run: its run of the card is over."
    ]


def test_a_person_who_joins_in_after_the_run_has_the_tools_back() -> None:
    book = Book("one").begin().answer("", "kanban_block").start_call("1.1.0")
    book.write(RunReleased(card="c0ffee01", run=1))
    book.finish_call("1.1.0").answer("bye")
    book.say("one more thing", "steer")
    book.join()
    book.answer("", "t")
    assert isinstance(book.next(), RunTool)


def test_a_turn_ends_at_its_step_limit() -> None:
    book = Book("one").begin()
    for number in range(1, 5):
        call = f"1.{number}.0"
        book.answer("", "t").start_call(call).finish_call(call)
    step = book.next()
    assert isinstance(step, Finish)
    assert step.outcome == "failed"
    assert step.problem is not None and step.problem.code == "step_limit"


# --- a stop in every phase ------------------------------------------------------------------------


def _asked() -> Book:
    book = Book("one").begin()
    book.ask()
    return book


def _waiting() -> Book:
    book = Book("one").begin()
    book.resume(after_ms=10**9)
    return book


PHASES: dict[str, Callable[[], Book]] = {
    "begun": lambda: Book("one").begin(),
    "asked": _asked,
    "failed": lambda: Book("one").begin().fail(),
    "answered with calls": lambda: Book("one").begin().answer("", "t", "t"),
    "a call runs": lambda: Book("one").begin().answer("", "t", "t").start_call("1.1.0"),
    "a call is done": lambda: Book("one").begin().answer("", "t").start_call("1.1.0").finish_call("1.1.0"),
    "last word said": lambda: Book("one").begin().answer("bye"),
    "suspended": lambda: _asked().suspend(),
    "waiting for a person": _waiting,
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_stop_ends_the_turn_in_every_phase_and_keeps_the_queue(phase: str) -> None:
    book = PHASES[phase]()
    assert kinds(book.tell(StopTurn())) == [StopRequested.__name__]
    assert book.next() == Finish(1, "stopped", "stopped by ann")
    book.finish()
    assert check(book.records).turns[0].outcome == "stopped"
    queued = book.say("and now")
    assert book.next() == Begin(2, [queued])


@pytest.mark.parametrize("phase", PHASES)
def test_a_stop_is_honoured_by_the_worker_that_comes_after_a_crash(phase: str) -> None:
    book = PHASES[phase]()
    book.tell(StopTurn())
    book.resume(after_ms=10**9)
    assert book.next() == Finish(1, "stopped", "stopped by ann")
    book.finish()
    check_ended(book.records)


def test_promise_7_a_stop_gives_every_open_call_a_true_outcome() -> None:
    book = Book("one").begin().answer("", "t", "t", "t")
    book.start_call("1.1.0", "unsafe").start_call("1.1.1", "pure")
    book.tell(StopTurn())
    outcomes = [(e.outcome, e.output) for e in book.finish() if isinstance(e, ToolCallFinished)]
    assert outcomes == [
        ("unknown", "Interrupted while it ran: stopped by ann. It may or may not have taken effect."),
        ("failed", "Interrupted while it ran: stopped by ann. The tool changes nothing, so nothing was changed."),
        ("failed", "Not run: stopped by ann."),
    ]


def test_promise_6_a_stop_keeps_what_had_arrived() -> None:
    book = _asked()
    book.tell(StopTurn())
    cut = book.finish(Partial("so far", "hm"))[0]
    assert cut == ModelInterrupted(turn=1, step=1, text="so far", thinking="hm", reason="stopped by ann")


def test_a_command_whose_turn_is_stopped_is_stopped_and_says_how_long_it_ran() -> None:
    book = Book("hello").begin().answer("", "terminal", "t").start_call("1.1.0", "keyed")
    book.now += 4_000
    book.tell(StopTurn())
    command, not_run = (event for event in book.finish() if isinstance(event, ToolCallFinished))
    assert (command.outcome, command.stopped, command.duration_ms) == ("failed", True, 4_000)
    assert command.task == task_of_call(book.session.id, "1.1.0") and "stopped by" in command.output
    assert (not_run.outcome, not_run.stopped, not_run.duration_ms) == ("failed", False, 0)


def test_what_was_to_steer_is_answered_before_the_interrupt_that_came_after_it() -> None:
    book = Book("one").begin()
    book.ask()
    later = book.say("later")
    steers, urgent = book.say("left", "steer"), book.say("stop that", "interrupt")
    after = book.say("and quickly", "steer")
    book.finish()
    assert book.next() == Begin(2, [steers, urgent])
    book.begin()
    assert [message.text for message in book.session.messages if isinstance(message, UserMessage)][-2:] == [
        "left",
        "stop that",
    ]
    assert book.next() == Join(2, [after])
    assert [queued.event.input for queued in book.session.queue] == [later, after]
