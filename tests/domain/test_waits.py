"""Waits: retries that double, answers that count once, limits that end a turn, forks and undone turns."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.domain.commands import AnswerWait, ChooseAgent, RepeatTurn, UndoTurn
from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events import Record
from holdfast.domain.events.actor import THE_CLOCK, Actor, AgentActor, RunActor, TaskActor
from holdfast.domain.events.chapter import ChapterOpened, ResetPolicySet
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import (
    InputReceived,
    ModelFailed,
    ModelInterrupted,
    SessionCreated,
    TurnFinished,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.history import UserMessage
from holdfast.domain.next_step import (
    CallModel,
    Finish,
    Partial,
    Rest,
    Sleep,
    TurnLimits,
    failure_events,
    retry_wait,
    wait_id,
)
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from holdfast.domain.session_fork import fork
from holdfast.domain.session_rules import decide
from tests.actors import person
from tests.domain.book import Book, answer
from tests.domain.steps import next_step

PROBLEM = Problem(code="rate_limit", message="Too many requests.")
LIMITS = TurnLimits(model_attempts=3)


def asked() -> Book:
    """A turn whose first model request is open."""
    book = Book("hello").begin()
    book.ask()
    return book


def opened(book: Book, **changes: object) -> WaitOpened:
    turn = book.session.turn
    assert turn is not None
    fields: dict[str, object] = {
        "turn": turn.number,
        "wait": wait_id(book.session, turn),
        "purpose": "question",
        "reason": "Which one?",
    }
    wait = WaitOpened(**(fields | changes))  # type: ignore[arg-type]
    book.write(wait)
    return wait


def test_a_retry_waits_as_long_as_the_provider_says_or_doubles_and_gives_up() -> None:
    book = asked()
    for attempt, pause in ((1, 1_000), (2, 2_000)):
        turn = book.session.turn
        assert turn is not None
        assert turn.attempts == attempt
        wait = retry_wait(book.session, PROBLEM, after_ms=None, now=book.now, limits=LIMITS)
        assert wait is not None
        assert wait.until == book.now + pause
        said = retry_wait(book.session, PROBLEM, after_ms=20_000, now=book.now, limits=LIMITS)
        assert said is not None
        assert said.until == book.now + 20_000
        book.write(wait)
        step = next_step(book.session, LIMITS, now=book.now)
        assert step == Sleep(1, wait.wait, wait.until, "try again")
        book.write(WaitAnswered(turn=1, wait=wait.wait, answer="try again", by=THE_CLOCK))
        assert next_step(book.session, LIMITS, now=book.now) == CallModel(1, 1, attempt + 1)
        book.ask()
    assert retry_wait(book.session, PROBLEM, after_ms=None, now=book.now, limits=LIMITS) is None


def test_a_wait_for_a_person_is_rest_and_is_answered_once() -> None:
    book = asked()
    wait = opened(book, call="1.1.0", choices=["left", "right"])
    assert book.next() == Rest()
    (answered,) = book.tell(AnswerWait(wait=wait.wait, answer=" 2 "))
    assert isinstance(answered, WaitAnswered)
    assert answered.answer == "right"
    with pytest.raises(Conflict, match="ann answered this already: right"):
        book.tell(AnswerWait(wait=wait.wait, answer="1"))


@pytest.mark.parametrize("text", ["yes", "Allow", "allow please"])
def test_an_approval_takes_no_other_answers(text: str) -> None:
    book = asked()
    wait = opened(book, purpose="approval", call="1.1.0", pattern="write:*")
    with pytest.raises(Rejected, match="allow, call, session, always, deny"):
        book.tell(AnswerWait(wait=wait.wait, answer=text))
    assert book.session.turn is not None
    assert book.session.turn.wait == wait


@pytest.mark.parametrize(("text", "allowed"), [("allow", set()), ("session", {"write:*"}), ("always", {"write:*"})])
def test_what_an_approval_covers(text: str, allowed: set[str]) -> None:
    book = asked()
    wait = opened(book, purpose="approval", call="1.1.0", pattern="write:*")
    book.tell(AnswerWait(wait=wait.wait, answer=text))
    assert book.session.allowed == allowed


@pytest.mark.parametrize("by", [AgentActor(session="s1"), RunActor(card="c1", run=1), TaskActor(task="t1"), THE_CLOCK])
def test_only_a_person_answers_an_approval_or_chooses_the_agent(by: Actor) -> None:
    book = asked()
    wait = opened(book, purpose="approval", call="1.1.0", pattern="write:*")
    for command in (AnswerWait(wait=wait.wait, answer="always"), ChooseAgent(profile="stronger")):
        with pytest.raises(Rejected, match="Only a person can"):
            decide(book.session, command, id="c1", by=by)


def test_nobody_waits_for_a_turn_that_is_over() -> None:
    book = asked()
    wait = opened(book)
    book.write(TurnFinished(turn=1, outcome="stopped", reason="stopped by ann"))
    with pytest.raises(Conflict, match="its turn has ended"):
        book.tell(AnswerWait(wait=wait.wait, answer="left"))


def test_ids_of_waits_are_unique_in_the_home_and_the_same_for_everybody() -> None:
    book, same = asked(), asked()
    other = fold(Session("fedcba9876543210"), [])
    turn = book.session.turn
    assert turn is not None
    assert same.session.turn is not None
    first = wait_id(book.session, turn)
    assert first == wait_id(same.session, same.session.turn)
    assert first != wait_id(other, turn)
    opened(book)
    assert book.session.turn is not None
    assert wait_id(book.session, book.session.turn) != first


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (TurnLimits(steps=1), "step_limit"),
        (TurnLimits(tokens=10), "token_limit"),
        (TurnLimits(minutes=1), "time_limit"),
    ],
)
def test_a_limit_ends_the_turn_between_two_steps(limits: TurnLimits, code: str) -> None:
    book = asked()
    said = answer(CallModel(1, 1, 1), "", "t")
    book.write(msgspec.structs.replace(said, usage=Usage(input_tokens=8, output_tokens=3)))
    assert not isinstance(next_step(book.session, limits, now=book.now), Finish), "open calls come first"
    book.start_call("1.1.0").finish_call("1.1.0")
    step = next_step(book.session, limits, now=book.now + 60_000)
    assert isinstance(step, Finish)
    assert step.problem is not None
    assert step.problem.code == code
    assert isinstance(next_step(book.session, TurnLimits(), now=book.now + 60_000), CallModel)


def test_only_the_time_that_it_worked_counts() -> None:
    """A person who answers the next morning, and a gateway that was off, do not use up the turn's time."""
    book, limits = asked(), TurnLimits(minutes=2)
    book.resume(after_ms=600_000)
    wait = opened(book)
    book.now += 600_000
    book.tell(AnswerWait(wait=wait.wait, answer="left"))
    book.answer("", "t").start_call("1.1.0").finish_call("1.1.0")
    assert isinstance(next_step(book.session, limits, now=book.now + 60_000), CallModel)
    assert isinstance(next_step(book.session, limits, now=book.now + 180_000), Finish)


def test_undo_takes_the_last_turns_out_of_the_context_one_by_one() -> None:
    book = Book()
    for text in ("one", "two"):
        book.say(text)
        book.begin().answer("done").finish()
    book.tell(UndoTurn())
    assert [m.text for m in book.session.messages if isinstance(m, UserMessage)] == ["one"]
    book.tell(UndoTurn())
    assert not book.session.messages
    with pytest.raises(Conflict, match="no turn to undo"):
        book.tell(UndoTurn())


def test_another_profile_forgets_the_chosen_model() -> None:
    book = Book()
    book.tell(ChooseAgent(model="mine:large"))
    assert (book.session.profile, book.session.model) == ("demo", "mine:large")
    book.tell(ChooseAgent(profile="coder"))
    assert (book.session.profile, book.session.model) == ("coder", "")


def test_promise_6_what_was_shown_of_an_answer_that_is_tried_again_is_kept() -> None:
    book = asked()
    shown = Partial("half a sen", "hm")
    events = failure_events(book.session, PROBLEM, shown, (None,), now=book.now, limits=LIMITS)
    assert events[0] == ModelInterrupted(turn=1, step=1, text="half a sen", thinking="hm", reason=PROBLEM.message)
    book.write(*events)
    assert isinstance(next_step(book.session, LIMITS, now=book.now), Sleep)
    assert any("half a sen" in getattr(message, "text", "") for message in book.session.visible_messages())


@pytest.mark.parametrize(("shown", "again"), [("", (None,)), ("", None), ("half a sen", None)])
def test_a_request_that_failed_says_why_and_waits_only_if_it_is_tried_again(
    shown: str, again: tuple[None] | None
) -> None:
    book = asked()
    failed, *wait = failure_events(book.session, PROBLEM, Partial(shown), again, now=book.now, limits=LIMITS)
    assert failed == ModelFailed(turn=1, step=1, problem=PROBLEM, text=shown)
    assert [type(event) for event in wait] == ([] if again is None else [WaitOpened])


def test_a_fork_knows_the_same_and_continues_separately() -> None:
    book = Book("one").begin().answer("done")
    book.finish()
    book.say("two")
    book.begin().ask()
    opened(book)
    book.say("left behind")
    events = fork(book.records, session="fedcba9876543210", title="fork", by=person("ann"), now=book.now)
    kinds = [type(event) for _, event in events]
    assert kinds[0] is SessionCreated
    assert kinds[-2:] == [TurnFinished, ResetPolicySet]
    assert [event.text for _, event in events if isinstance(event, InputReceived)] == ["one", "two"]
    stream = "session/fedcba9876543210"
    records = [Record(seq=n, stream=stream, version=n, at=at, event=event) for n, (at, event) in enumerate(events, 1)]
    child = fold(Session("fedcba9876543210"), records)
    assert child.turn is None
    assert not child.queue
    users = [m.text for m in child.messages if isinstance(m, UserMessage)]
    assert users == [m.text for m in book.session.messages if isinstance(m, UserMessage)]
    waits = {event.wait for _, event in events if isinstance(event, WaitOpened)}
    assert not waits & {record.event.wait for record in book.records if isinstance(record.event, WaitOpened)}


def test_a_repeated_turn_takes_all_later_ones_out_and_says_its_messages_as_one() -> None:
    book = Book()
    for text in ("one", "two", "three"):
        book.say(text)
        book.begin().answer("done").finish()
    book.tell(RepeatTurn(turn=2))
    assert [m.text for m in book.session.messages if isinstance(m, UserMessage)] == ["one"]
    assert [queued.event.text for queued in book.session.queue] == ["two"]
    book.begin()
    with pytest.raises(Conflict, match="A turn is running"):
        book.tell(RepeatTurn())
    book.answer("done").finish()
    with pytest.raises(Conflict, match="does not see turn 3"):
        book.tell(RepeatTurn(turn=3))
    with pytest.raises(Rejected, match="empty"):
        book.tell(RepeatTurn(text="  "))
    book.tell(RepeatTurn(text="other"))
    assert [m.text for m in book.session.messages if isinstance(m, UserMessage)] == ["one"]
    assert [queued.event.text for queued in book.session.queue] == ["other"]


@pytest.mark.parametrize("turn", [1, 4])
def test_a_turn_that_the_model_does_not_see_cannot_be_repeated(turn: int) -> None:
    """It belongs to the chapter before, or there is none of that number."""
    book = Book()
    for text in ("one", "two", "three"):
        book.say(text)
        book.begin().answer("done").finish()
        if text == "one":
            book.write(ChapterOpened(chapter=2, rule="idle", reason="it was idle", by=person("ann")))
    with pytest.raises(Conflict, match=f"does not see turn {turn}"):
        book.tell(RepeatTurn(turn=turn))
    assert book.tell(RepeatTurn(turn=2))
