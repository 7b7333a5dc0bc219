"""What people ask about a summary: to write one, and what to do when there is none."""

from __future__ import annotations

import pytest

from holdfast.domain.chapter import INTERRUPTED
from holdfast.domain.commands import AnswerWait
from holdfast.domain.compaction import Compact
from holdfast.domain.context_limits import CompactionRules
from holdfast.domain.errors import Rejected
from holdfast.domain.events.chapter import SummaryFailed, SummaryRequested, SummaryStarted, SummaryWritten
from holdfast.domain.events.problem import Problem, ProblemCode
from holdfast.domain.events.session import WaitAnswered, WaitOpened
from holdfast.domain.next_step import Ask, CallModel, Rest, TurnLimits
from holdfast.domain.session_rules import decide
from holdfast.domain.why import why
from tests.actors import person
from tests.domain.book import Book
from tests.domain.steps import next_step

CHOICES = ["try again", "digest"]


def asking() -> Book:
    """A turn that does not fit, and whose summary failed."""
    book = Book("hello").begin()
    book.write(WaitOpened(turn=1, wait="w1", purpose="compaction", reason="it does not fit", choices=CHOICES))
    return book


@pytest.mark.parametrize(("said", "meant"), [("2", "digest"), (" digest ", "digest"), ("1", "try again")])
def test_a_choice_is_accepted_by_its_number_or_its_text(said: str, meant: str) -> None:
    (event,) = decide(asking().session, AnswerWait(wait="w1", answer=said), id="c1", by=person("cli"))
    assert isinstance(event, WaitAnswered)
    assert event.answer == meant


@pytest.mark.parametrize(("said", "meant"), [("3", "3"), ("1", "1"), ("12", "12")])
def test_choice_that_looks_like_a_number_is_named_by_its_text(said: str, meant: str) -> None:
    book = Book("hello").begin()
    book.write(WaitOpened(turn=1, wait="w1", purpose="question", reason="How many?", choices=["3", "1", "2"]))
    (event,) = decide(book.session, AnswerWait(wait="w1", answer=said), id="c1", by=person("cli"))
    assert isinstance(event, WaitAnswered)
    assert event.answer == meant


@pytest.mark.parametrize("said", ["3", "0", "yes", "digset"])
def test_anything_else_is_not_guessed(said: str) -> None:
    with pytest.raises(Rejected, match="answered with one of: try again, digest"):
        decide(asking().session, AnswerWait(wait="w1", answer=said), id="c1", by=person("cli"))


def test_why_names_commands_that_work() -> None:
    (first, *_) = why(asking().session, now=0)
    assert "`holdfast answer w1 'try again'` or `holdfast answer w1 digest`" in first.text


def wanted(code: ProblemCode) -> Book:
    """Somebody wanted a summary, and this became of it."""
    book = Book("hello").begin().answer("hi")
    book.finish()
    book.write(SummaryRequested(instructions="keep the names", by=person("cli")))
    book.write(SummaryStarted(covers_turn=1, attempt=1, model="demo", tokens=5, reason="cli asked for it"))
    problem = Problem(code=code, message="No.")
    book.write(SummaryFailed(covers_turn=1, attempt=1, problem=problem, retry_at=None))
    return book


def test_a_summary_that_was_only_cut_is_still_wanted() -> None:
    book = wanted(INTERRUPTED)
    step = next_step(book.session, TurnLimits(), now=book.now)
    assert step == Compact(1, "cli asked for it", instructions="keep the names")
    assert book.session.chapter.failures == 0


def test_one_that_failed_is_not_asked_for_for_ever() -> None:
    book = wanted("demo_failed")
    assert next_step(book.session, TurnLimits(), now=book.now) == Rest()
    assert book.session.chapter.failures == 1


def test_a_chosen_digest_holds_until_the_model_has_answered() -> None:
    """The first one may not be enough; nobody is asked twice in a row."""
    book = Book("hello")
    for word in ("one", "two"):
        book.begin().answer("x" * 4_000)
        book.finish()
        book.say(word)
    book.begin()
    limits = TurnLimits(compaction=CompactionRules(threshold=10, limit=10, keep_recent=1, on_failure="pause"))
    problem = Problem(code="demo_failed", message="No.")
    book.write(SummaryStarted(covers_turn=1, attempt=1, model="demo", tokens=5, reason="too long"))
    book.write(SummaryFailed(covers_turn=1, attempt=1, problem=problem, retry_at=None))
    ask = next_step(book.session, limits, now=book.now)
    assert isinstance(ask, Ask)
    book.write(ask.wait)
    book.write(WaitAnswered(turn=3, wait=ask.wait.wait, answer="digest", by=person("cli")))
    for covers in (1, 2):
        step = next_step(book.session, limits, now=book.now)
        assert isinstance(step, Compact)
        assert (step.covers, step.digest) == (2, True)
        book.write(compacted(covers))
    assert isinstance(book.ask(), CallModel)
    assert book.session.chapter.use_digest, "the model may refuse it again"
    book.answer("ok")
    assert not book.session.chapter.use_digest


def compacted(covers: int) -> SummaryWritten:
    """A digest that does not help much."""
    return SummaryWritten(
        covers_turn=covers,
        summary="d" * 100,
        source="digest",
        model="",
        tokens_before=99,
        tokens_after=99,
        reason="too long",
    )
