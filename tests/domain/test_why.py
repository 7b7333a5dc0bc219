"""`why` for a session and its chapters: in every state a sentence that is true, and that rests on a fitting event."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.domain.commands import ArchiveSession, ChooseMode, CompactSession, StopTurn
from holdfast.domain.events import AnyEvent
from holdfast.domain.events.chapter import (
    Blocker,
    ChapterOpened,
    ResetPostponed,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
    Survivor,
)
from holdfast.domain.events.parts import Call, Rights, RightsLayer, Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import ModelResponded, WaitOpened
from holdfast.domain.next_step import Partial
from holdfast.domain.reset import NotDue
from holdfast.domain.rights import describe
from holdfast.domain.why import Sentence, why, why_chapter
from tests.actors import person
from tests.domain.book import PROBLEM, Book

LATER = 65_000
NEVER = NotDue()


def kinds(book: Book, sentences: list[Sentence]) -> list[tuple[str, str]]:
    """Each sentence with the kind of the event that it rests on."""
    assert [one.at for one in sentences] == [book.records[one.version - 1].at for one in sentences]
    return [(type(book.records[one.version - 1].event).__name__, one.text) for one in sentences]


def told(book: Book) -> list[tuple[str, str]]:
    return kinds(book, why(book.session, now=book.now + LATER))


def of_chapter(book: Book, coming: NotDue = NEVER) -> list[tuple[str, str]]:
    return kinds(book, why_chapter(book.session, coming, now=book.now + LATER))


# --- sessions -----------------------------------------------------------------------------------


def test_a_request_to_the_model_and_a_second_attempt() -> None:
    book = Book("one").begin()
    assert told(book)[0] == ("TurnStarted", "Turn 1 is between two steps.")
    book.ask()
    assert told(book) == [
        ("ModelRequested", "Turn 1 has been waiting for model m for 1 min 5 s (step 1)."),
        ("TurnStarted", "Turn 1 began 1 min 5 s ago."),
    ]
    for arrived, doing in ((Partial(thinking="so"), "thinking"), (Partial("Well", "so"), "answering")):
        first = why(book.session, arrived=arrived, now=book.now + LATER)[0]
        assert first.text == f"Turn 1: model m is {doing}; it was asked 1 min 5 s ago (step 1)."
    book.resume(after_ms=5_000)
    book.ask()
    assert told(book)[:2] == [
        ("ModelRequested", "Turn 1 has been waiting for model m for 1 min 5 s (step 1, request 2)."),
        ("TurnResumed", "It was resumed 1 min 5 s ago after 5 s away: the gateway was killed or crashed."),
    ]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"timeout": 5, "command": "make test"}', "`t` make test"),
        ('{"content": "hello", "path": "a.txt"}', "`t` a.txt"),
        ('{"limit": 5, "text": "find me"}', "`t` find me"),
        ('{"limit": 5}', "`t`"),
        ("no JSON", "`t`"),
        ("", "`t`"),
    ],
)
def test_a_running_call_is_named_by_its_subject(arguments: str, shown: str) -> None:
    book = Book("one").begin()
    step = book.ask()
    call = Call(call="1.1.0", tool="t", arguments=arguments)
    book.write(
        ModelResponded(
            turn=1,
            step=step.step,
            text="",
            thinking="",
            calls=[call],
            finish_reason="tool_calls",
            usage=Usage(),
            duration_ms=1,
        )
    )
    book.start_call("1.1.0")
    assert told(book)[0] == ("ToolCallStarted", f"Turn 1 has been running for 1 min 5 s: {shown}.")


def test_a_stop_an_interrupt_and_a_shutdown() -> None:
    book = Book("one").begin()
    book.ask()
    book.tell(StopTurn())
    assert told(book)[0] == ("StopRequested", "Turn 1 is about to end: stopped by ann.")
    book = Book("one").begin()
    book.ask()
    book.say("wait for your turn")
    book.say("now", "interrupt")
    assert told(book)[0] == ("InputReceived", "Turn 1 is about to end: interrupted by a message from ann.")
    assert [text for _, text in told(book)[2:]] == [
        "Message 1 in the queue (queue, from ann) has been waiting for 1 min 5 s: wait for your turn",
        "Message 2 in the queue (interrupt, from ann) has been waiting for 1 min 5 s: now",
    ]
    book = Book("one").begin().suspend()
    assert told(book)[0][1] == (
        "Turn 1 is suspended (the gateway was shut down); it resumes when a gateway is running."
    )


def test_the_end_of_a_turn_with_its_problem() -> None:
    book = Book("one").begin().answer("bye")
    book.finish()
    assert told(book) == [("TurnFinished", "Idle. Turn 1 finished 1 min 5 s ago: the agent had nothing more to do.")]
    book = Book("one").begin().fail()
    book.finish()
    ((kind, text),) = told(book)
    assert kind == "TurnFinished" and text.startswith("Idle. Turn 1 failed 1 min 5 s ago: ")
    assert PROBLEM.message.rstrip(".") in text


def test_a_mode_that_a_person_chose_and_an_archived_session() -> None:
    book = Book()
    book.tell(ChooseMode(mode="read"))
    assert told(book) == [
        ("ModeChosen", "Idle. It has received no message yet."),
        ("ModeChosen", "A person chose its mode: it may only read: change nothing and run no command."),
    ]
    book.tell(ChooseMode(mode="profile"))
    book.tell(ArchiveSession())
    assert told(book) == [
        ("SessionArchived", "Idle. It has received no message yet."),
        ("SessionArchived", "It is archived; a message restores it."),
    ]


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (
            WaitOpened(turn=1, wait="w1", purpose="question", reason="Which colour?", choices=[]),
            "has been waiting for an answer for 1 min 5 s: Which colour? Answer with `holdfast answer w1 TEXT`.",
        ),
        (
            WaitOpened(turn=1, wait="w1", purpose="approval", reason="It wants to run make.", choices=[]),
            "has been waiting for an approval for 1 min 5 s: It wants to run make. "
            "`holdfast answer w1 --allow` or --deny.",
        ),
        (
            WaitOpened(turn=1, wait="w1", purpose="approval", reason="It wants to run make.", choices=[], until=96_000),
            "has been waiting for an approval for 1 min 5 s: It wants to run make. "
            "`holdfast answer w1 --allow` or --deny. Without an answer it is denied in 30 s.",
        ),
        (
            WaitOpened(turn=1, wait="w1", purpose="retry", reason="Too many requests.", choices=[], until=96_000),
            "tries again in 30 s: Too many requests. Stop the turn to cancel.",
        ),
        (
            WaitOpened(turn=1, wait="w1", purpose="quota", reason="None is left.", choices=[]),
            "has been waiting for a quota for 1 min 5 s: None is left. `holdfast answer w1 'try again'` continues it.",
        ),
        (
            WaitOpened(turn=1, wait="w1", purpose="quota", reason="None is left.", choices=[], until=96_000),
            "continues by itself in 30 s: None is left. `holdfast answer w1 'wait for me'` cancels that, "
            "`holdfast answer w1 'try again'` continues it now.",
        ),
        (
            WaitOpened(turn=1, wait="w1", purpose="login", reason="Run `claude /login`.", choices=[]),
            "has been waiting for a log-in for 1 min 5 s: Run `claude /login`. Then `holdfast answer w1 'try again'`.",
        ),
        (
            WaitOpened(turn=1, wait="w1", purpose="resume", reason="it was away for too long", choices=[]),
            "has been waiting for a person for 1 min 5 s: it was away for too long. "
            "Send a message to continue, or stop it.",
        ),
        (
            WaitOpened(turn=1, wait="w1", purpose="compaction", reason="the summary failed", choices=[]),
            "has been waiting for a person for 1 min 5 s: the summary failed. "
            "`holdfast answer w1 'try again'` or `holdfast answer w1 digest`.",
        ),
    ],
    ids=lambda value: value.purpose if isinstance(value, WaitOpened) else "",
)
def test_what_a_turn_waits_for(wait: WaitOpened, text: str) -> None:
    book = Book("one").begin()
    book.write(wait)
    assert told(book)[0] == ("WaitOpened", f"Turn 1 {text}")


# --- rights -------------------------------------------------------------------------------------


def test_the_limits_of_what_an_agent_created() -> None:
    plain = RightsLayer(profile="boss", rules={}, paths=[])
    strict = RightsLayer(
        profile="builder",
        rules={f"tool{number}": "ask" for number in range(14)},
        paths=["/work", "/data"],
        mcp=["issues", "mail"],
        sandbox="on",
        network=False,
    )
    shown = ", ".join(f"tool{number} ask" for number in range(12))
    assert describe(Rights(layers=[plain, strict])) == [
        "An agent with the profile boss created it. It may do no more than that: "
        "tools as by default; files in its own workspace.",
        f"An agent with the profile builder created it. It may do no more than that: tools {shown} and 2 more; "
        "files in /work, /data; MCP servers issues, mail; no network; always in a sandbox.",
    ]
    twelve = RightsLayer(profile="boss", rules={f"tool{number}": "ask" for number in range(12)}, paths=[])
    assert "more;" not in describe(Rights(layers=[twelve]))[0]


# --- chapters -----------------------------------------------------------------------------------


def test_the_next_reset_and_what_postpones_it() -> None:
    book = Book("one").begin().answer("bye")
    book.finish()
    now = book.now + LATER
    assert of_chapter(book) == []
    assert of_chapter(book, NotDue("idle", now + 30_000)) == [
        ("TurnFinished", "The next reset (idle) comes in 30 s, unless there is user activity.")
    ]
    assert of_chapter(book, NotDue("daily", now))[0][1] == "The next reset (daily) comes now."
    blockers = [Blocker(by="process", reason="make is working"), Blocker(by="process", reason="so is tar")]
    book.write(ResetPostponed(rule="idle", due_at=book.now, until=now + 90_000, next_check=0, blockers=blockers))
    assert of_chapter(book, NotDue("idle", book.now)) == [
        (
            "ResetPostponed",
            "A reset (idle) was due 1 min 5 s ago and is postponed for at most 1 min 30 s more: "
            "make is working; so is tar.",
        )
    ]
    book.write(ResetPostponed(rule="idle", due_at=book.now, until=None, next_check=0, blockers=blockers[:1]))
    assert of_chapter(book, NotDue("idle", book.now))[0][1] == (
        "A reset (idle) was due 1 min 5 s ago and is postponed: make is working."
    )


def test_what_a_new_chapter_took_over() -> None:
    book = Book("one").begin().answer("bye")
    book.finish()
    kept = Survivor(
        task="aa", title="a server", pid=1, activity="serving", age_ms=1, rule="it serves", evidence="a socket"
    )
    gone = Survivor(task="bb", title="a build", pid=2, activity="idle", age_ms=1, rule="it was idle", evidence="no CPU")
    book.write(ChapterOpened(chapter=2, rule="idle", reason="it was idle", by=person("ann")))
    assert of_chapter(book) == [("ChapterOpened", "Chapter 2 began 1 min 5 s ago: it was idle.")]
    book.write(
        ChapterOpened(chapter=3, rule="idle", reason="it was idle", by=person("ann"), kept=[kept], stopped=[gone])
    )
    assert of_chapter(book)[0][1] == (
        "Chapter 3 began 1 min 5 s ago: it was idle. Handed over: aa a server (serving). "
        "Stopped: bb a build (it was idle)."
    )


def written(source: str = "model", *, turn: int = 2, step: int = 0, left_out: int = 0) -> SummaryWritten:
    return SummaryWritten(
        covers_turn=turn,
        covers_step=step,
        summary="s",
        source=source,  # type: ignore[arg-type]
        model="m",
        tokens_before=100,
        tokens_after=10,
        reason="it grew long",
        left_out=left_out,
    )


def begun(*, purpose: str = "compaction", attempt: int = 1) -> SummaryStarted:
    return SummaryStarted(
        covers_turn=1,
        attempt=attempt,
        model="m",
        tokens=100,
        reason="it grew long",
        purpose=purpose,  # type: ignore[arg-type]
    )


def no_summary(retry_at: int | None) -> SummaryFailed:
    return SummaryFailed(
        covers_turn=1, attempt=1, problem=Problem(code="network", message="No route."), retry_at=retry_at
    )


HANDS_OVER = SummaryRequested(instructions="", by=person("ann"), purpose="hand_over")


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([HANDS_OVER], "ann resets it; the note for the next chapter comes first."),
        (
            [HANDS_OVER, begun(purpose="hand_over")],
            "m has been writing the note for the next chapter for 1 min 5 s: it grew long.",
        ),
        ([begun(attempt=2)], "m has been summarising its context for 1 min 5 s (attempt 2): it grew long."),
        (
            [begun(), no_summary(96_000)],
            "The last summary failed (No route); the model still sees everything. It is tried again in 30 s.",
        ),
        (
            [begun(), no_summary(None)],
            "The last summary failed (No route); the model still sees everything. "
            "It is tried again after the next turn.",
        ),
        (
            [written("digest"), begun(), no_summary(None)],
            "The last summary failed (No route); a digest is used instead. It is tried again after the next turn.",
        ),
        ([written()], "A summary replaces the turns up to 2 (100 → 10 tokens): it grew long."),
        ([written("digest", step=3)], "A digest replaces the turns up to 1 and the steps up to 3 of turn 2 "),
        ([written(turn=1, step=3)], "A summary replaces the steps up to 3 of turn 1 (100 → 10 tokens)"),
        (
            [written(left_out=4)],
            "it grew long. 4 messages did not fit into the request for it; its writer saw a digest of them.",
        ),
    ],
)
def test_what_becomes_of_a_long_context(events: list[AnyEvent], text: str) -> None:
    book = Book()
    for number in range(2):
        book.say(str(number))
        book.begin().answer("bye")
        book.finish()
    book.write(*events)
    ((_, found),) = of_chapter(book)
    assert text in found


def test_a_summary_that_a_person_asked_for() -> None:
    book = Book("one").begin().answer("bye")
    book.finish()
    book.tell(CompactSession())
    assert of_chapter(book) == [("SummaryRequested", "ann asked for a summary of its context; that comes next.")]


def test_a_note_for_the_next_chapter_is_no_summary_of_this_one() -> None:
    book = Book("one").begin().answer("bye")
    book.finish()
    book.write(HANDS_OVER, begun(purpose="hand_over"), msgspec.structs.replace(written(turn=1), purpose="hand_over"))
    assert of_chapter(book) == []
