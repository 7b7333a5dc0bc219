"""Summaries by a worker: those that come, fail, hang, are cut; what the model sees meanwhile, and what `why` says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from holdfast.domain.chapter import INTERRUPTED
from holdfast.domain.commands import AnswerWait, CompactSession, UndoReset, UndoTurn
from holdfast.domain.compaction import Compact
from holdfast.domain.context_limits import CompactionRules
from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events import Record, session_stream
from holdfast.domain.events.chapter import (
    ChapterOpened,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
)
from holdfast.domain.events.parts import Usage
from holdfast.domain.events.session import ModelRequested, TurnFinished, WaitOpened
from holdfast.domain.history import UserMessage, text_size
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.reset import NotDue
from holdfast.domain.session import Session
from holdfast.domain.why import why_chapter
from holdfast.runtime import compaction
from holdfast.store.contract import Append, Appended, Write
from tests.domain.chapters import check_context
from tests.domain.history import check_ended
from tests.eventually import PATIENCE, eventually
from tests.lifecycle.rig import LifecycleRig
from tests.runtime.rig import ID, SECRET, kinds, only, seen
from tests.store.rebuilt import check_projections

LONG = "say " + "word " * 200
"""About 250 tokens, said and answered: 500 a turn."""


FIXED = 420
"""About the tokens of the rig's instructions and tools."""


def limits(threshold: int = 1_200, limit: int = 3_000, keep_recent: int = 1, **more: object) -> TurnLimits:
    """So many tokens of messages."""
    threshold, limit = threshold and threshold + FIXED, limit + FIXED
    rules = CompactionRules(threshold=threshold, limit=limit, keep_recent=keep_recent, **more)  # type: ignore[arg-type]
    return TurnLimits(resume_attempts=100, compaction=rules)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LifecycleRig]:
    rig = await LifecycleRig(tmp_path, limits=limits()).start()
    rig.agents.summary_seconds = 0.1
    try:
        async with asyncio.timeout(PATIENCE):
            yield rig
    finally:
        await rig.close()
        last = LifecycleRig(tmp_path)
        check_context(await last.records())
        await last.close()
        check_projections(tmp_path / "holdfast.db")


def heard(session: Session) -> list[str]:
    """The first words of what the model sees of the user."""
    return [message.text[:9] for message in session.visible_messages() if isinstance(message, UserMessage)]


def because(session: Session, now: int) -> str:
    return " ".join(sentence.text for sentence in why_chapter(session, NotDue(), now=now))


async def turns(rig: LifecycleRig, count: int, text: str = LONG) -> None:
    first = (await rig.sessions.get(ID)).turns
    for number in range(first, first + count):
        message = f"{text}{number}"
        await (rig.say(message, f"m{number}") if number else rig.create(message))
        await rig.until(seen(TurnFinished, number + 1))
        await quiet(rig)


async def quiet(rig: LifecycleRig) -> None:
    """Nothing to do, and nobody at it: a summary that comes by itself has come."""

    async def at_rest() -> bool:
        return (await rig.sessions.get(ID)).activity == "idle" and ID not in rig.runner.working

    await eventually(at_rest)


async def test_past_the_threshold_the_oldest_turns_are_summarised_at_rest(rig: LifecycleRig) -> None:
    rig.agents.limits = limits(threshold=1_400)
    await turns(rig, 3)
    records = await rig.until(seen(SummaryWritten))
    [made] = only(records, SummaryWritten)
    assert isinstance(made, SummaryWritten)
    assert (made.source, made.covers_turn) == ("model", 2) and made.tokens_after < made.tokens_before
    session = await rig.sessions.get(ID)
    assert len(heard(session)) == 1 and session.size == made.tokens_after
    assert "A summary of turns up to 2" in session.preamble()[0].text  # type: ignore[union-attr]
    assert len([message for message in session.messages if isinstance(message, UserMessage)]) == 3, "nothing is gone"


@pytest.mark.parametrize("how", ["fail", "hang", "empty"])
async def test_promise_6_without_a_summary_everything_stays_then_a_digest_takes_over_then_a_summary(
    rig: LifecycleRig, how: str
) -> None:
    await rig.create(f"summary {how}")
    await quiet(rig)
    await turns(rig, 3)
    await rig.until(seen(SummaryFailed))
    session = await rig.sessions.get(ID)
    assert len(heard(session)) == 4, "it fits, so all of it stays"
    assert "the model still sees everything" in because(session, rig.clock.now())
    assert "tried again in" in because(session, rig.clock.now())
    await turns(rig, 5)
    records = await rig.until(seen(SummaryWritten))
    digest = only(records, SummaryWritten)[0]
    assert isinstance(digest, SummaryWritten) and digest.source == "digest"
    session = await rig.sessions.get(ID)
    assert session.chapter.provisional and "A digest, put together by a rule" in session.preamble()[0].text  # type: ignore[union-attr]
    assert f"The user said: summary {how}" in digest.summary
    await rig.say("summary ok", "better")
    await rig.until(seen(TurnFinished, 10))
    await rig.tell(CompactSession(), "c1")
    await rig.until(lambda found: any(_by_model(record) for record in found))
    session = await rig.sessions.get(ID)
    assert not session.chapter.provisional and session.chapter.failures == 0
    assert session.chapter.summary is not None and session.chapter.summary.covers_turn > digest.covers_turn


def _by_model(record: Record) -> bool:
    return isinstance(record.event, SummaryWritten) and record.event.source == "model"


@pytest.mark.parametrize("answer", ["try again", "digest", "2"])
async def test_on_failure_pause_a_person_chooses(rig: LifecycleRig, answer: str) -> None:
    rig.agents.limits = limits(limit=1_400, on_failure="pause")
    await rig.create("summary fail")
    await quiet(rig)
    await turns(rig, 3)
    await rig.say(LONG, "last")
    records = await rig.until(seen(WaitOpened))
    [wait] = only(records, WaitOpened)
    assert isinstance(wait, WaitOpened)
    assert wait.purpose == "compaction" and wait.choices == ["try again", "digest"]
    assert (await rig.sessions.get(ID)).activity == "waiting"
    with pytest.raises(Rejected, match="try again, digest"):
        await rig.tell(AnswerWait(wait=wait.wait, answer="whatever"), "a0")
    await rig.tell(AnswerWait(wait=wait.wait, answer=answer), "a1")
    if answer == "try again":
        records = await rig.until(seen(WaitOpened, 2))
        assert kinds(records[wait_at(records) :]).count("SummaryFailed") == 1, "it was tried, and asks again"
        [_, again] = only(records, WaitOpened)
        assert isinstance(again, WaitOpened)
        await rig.tell(AnswerWait(wait=again.wait, answer="digest"), "a2")
    await rig.until(seen(TurnFinished, 5))
    assert (await rig.sessions.get(ID)).chapter.provisional


def wait_at(records: Sequence[Record]) -> int:
    return kinds(records).index("WaitOpened")


async def test_ineffective_summaries_stop_after_three_and_why_says_so(rig: LifecycleRig) -> None:
    """The turns that are kept are larger than the threshold, so no summary makes the context small enough."""
    rig.agents.limits = limits(threshold=100, limit=100_000, keep_recent=6)
    text = "say " + "word " * 100
    await turns(rig, 12, text)
    assert len(only(await rig.records(), SummaryWritten)) == 3, "no fourth one"
    session = await rig.sessions.get(ID)
    assert session.chapter.ineffective == 3
    assert "3 in a row did not help" in because(session, rig.clock.now())
    rig.agents.limits = limits(threshold=100, limit=600, keep_recent=6)
    await turns(rig, 2, text)
    session = await rig.sessions.get(ID)
    assert session.size <= 600 + FIXED, "what does not fit is made to fit, whatever was in vain"
    await rig.tell(CompactSession(), "c1")
    await quiet(rig)
    assert (await rig.sessions.get(ID)).chapter.ineffective == 0


async def test_what_a_model_needs_anyway_counts_so_that_it_does_not_summarise_for_ever(rig: LifecycleRig) -> None:
    """Instructions and tools alone are over the threshold: the model says so, and no summary helps."""
    await rig.create("say one")
    await rig.rest()
    session = await rig.sessions.get(ID)
    session = msgspec.structs.replace(session, counted_tokens=100_000, counted=len(session.visible_history))
    made = compaction._written(session, Compact(1, "long"), "short", model="m", usage=Usage())
    assert made.tokens_after > 0.8 * made.tokens_before


async def test_compact_on_request_at_rest_and_while_a_turn_runs(rig: LifecycleRig) -> None:
    await rig.create("say one")
    await rig.rest()
    await rig.tell(CompactSession(instructions="only the names"), "c1")
    records = await rig.until(seen(SummaryWritten))
    [made] = only(records, SummaryWritten)
    assert isinstance(made, SummaryWritten) and made.covers_turn == 1
    with pytest.raises(Conflict, match="nothing to summarise"):
        await rig.tell(CompactSession(), "c2")
    await rig.say("say two", "m2")
    await rig.rest()
    await rig.say("hold three", "m3")
    await rig.until(seen(ModelRequested, 3))
    await rig.tell(CompactSession(), "c3")
    with pytest.raises(Conflict, match="already"):
        await rig.tell(CompactSession(), "c4")
    rig.model.go.set()
    records = await rig.until(seen(SummaryWritten, 2))
    assert kinds(records).index("SummaryStarted", 12) > max(
        context for context, kind in enumerate(kinds(records)) if kind == "TurnFinished"
    ), "after the turn, not into it"
    assert (await rig.rest()) and heard(await rig.sessions.get(ID)) == ["hold thre"]


async def test_the_request_for_a_summary_leaves_room_for_the_answer_whatever_the_user_adds(rig: LifecycleRig) -> None:
    rig.agents.limits = limits(threshold=0)
    await rig.create("summary echo")
    await rig.rest()
    await turns(rig, 3)
    await rig.tell(CompactSession(instructions="keep " * 1_200), "c1")
    [made] = only(await rig.until(seen(SummaryWritten)), SummaryWritten)
    assert isinstance(made, SummaryWritten)
    assert made.left_out > 0 and "The user adds: keep" in made.summary
    assert text_size(compaction.INSTRUCTIONS + made.summary) <= rig.agents.limits.compaction.limit * 3 // 4


async def test_a_wish_is_not_forgotten_because_a_message_came_first(rig: LifecycleRig) -> None:
    rig.agents.summary_seconds = 60
    await rig.create("summary hang")
    await rig.rest()
    await rig.tell(CompactSession(instructions="only the names"), "c1")
    await rig.until(seen(SummaryStarted))
    await rig.say("say two", "m2")
    await rig.say("say three", "m3")
    records = await rig.until(seen(SummaryStarted, 2))
    assert [turn.text for turn in check_ended(records).turns] == ["hang", "two", "three"], (
        "in their order, before the summary"
    )
    assert [_code(event) for event in only(records, SummaryFailed)] == [INTERRUPTED]
    session = await rig.sessions.get(ID)
    assert session.chapter.requested is not None and session.chapter.failures == 0
    rig.model.go.set()
    await rig.until(seen(SummaryWritten))
    assert (await rig.sessions.get(ID)).chapter.requested is None


def _code(event: object) -> str:
    assert isinstance(event, SummaryFailed)
    return event.problem.code


async def test_a_requested_compaction_outlives_the_shutdown(rig: LifecycleRig, tmp_path: Path) -> None:
    rig.agents.summary_seconds = 60
    await rig.create("summary hang")
    await rig.rest()
    await rig.tell(CompactSession(), "c1")
    await rig.until(seen(SummaryStarted))
    await rig.close()
    again = LifecycleRig(tmp_path)
    again.model.go.set()
    await again.start()
    await again.until(seen(SummaryWritten))
    await again.close()


async def test_a_crash_in_the_middle_is_picked_up_also_when_there_is_nothing_to_do_any_more(
    rig: LifecycleRig, tmp_path: Path
) -> None:
    await rig.create("say one")
    await rig.rest()
    started = SummaryStarted(covers_turn=1, attempt=1, model="m", tokens=9, reason="long")
    await rig.store.append(Append((Write(session_stream(ID), (started,)),), rig.clock.now()))
    assert (await rig.sessions.get(ID)).activity == "compacting"
    await rig.close()
    again = await LifecycleRig(tmp_path).start()  # with a threshold that it is far away from
    records = await again.until(seen(SummaryFailed))
    assert [_code(event) for event in only(records, SummaryFailed)] == [INTERRUPTED]
    assert (await again.sessions.get(ID)).activity == "idle"
    await again.reset("r1")
    await again.close()


async def test_a_bug_in_a_summary_leaves_nothing_that_looks_as_if_it_were_running(rig: LifecycleRig) -> None:
    await rig.create("summary bug")
    await rig.rest()
    await rig.tell(CompactSession(), "c1")
    records = await rig.until(seen(SummaryFailed))
    assert [_code(event) for event in only(records, SummaryFailed)] == ["internal"]
    session = await rig.sessions.get(ID)
    assert session.activity == "idle" and session.chapter.in_progress is None
    assert "tried again after the next turn" in because(session, rig.clock.now())


async def test_nothing_is_undone_under_a_summary_that_is_being_written(rig: LifecycleRig) -> None:
    """Else it would stand for a chapter that it never saw."""
    rig.agents.summary_seconds = 60
    await rig.create("say one")
    await rig.rest()
    await rig.reset("r1")
    await rig.say("summary hang", "m2")
    await rig.rest()
    await rig.tell(CompactSession(), "c1")
    await rig.until(seen(SummaryStarted))
    for command in (UndoReset(), UndoTurn()):
        with pytest.raises(Conflict, match="summarised"):
            await rig.tell(command, f"undo {type(command).__name__}")
    with pytest.raises(Conflict, match="summarised"):
        await rig.reset("r2")
    rig.model.go.set()
    await rig.until(seen(SummaryWritten))
    await rig.rest()
    await rig.tell(UndoReset(), "u1")
    assert heard(await rig.sessions.get(ID)) == ["say one", "summary h"]
    with pytest.raises(Conflict, match="no turn to undo"):
        await rig.reset("r3")
        await rig.tell(UndoTurn(), "u2")


@pytest.mark.parametrize("what", ["reset", "undo"])
async def test_a_reset_or_its_undo_in_the_moment_in_which_a_summary_begins(
    rig: LifecycleRig, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    await rig.create("say one")
    await rig.rest()
    await rig.reset("r1")
    await rig.say("say two", "m2")
    await rig.rest()
    append, raced = rig.store.append, list[int]()

    async def racing(wanted: Append) -> Appended:
        if not raced and any(isinstance(event, SummaryStarted) for w in wanted.writes for event in w.events):
            raced.append(1)
            await (rig.reset("r2") if what == "reset" else rig.tell(UndoReset(), "u1"))
        return await append(wanted)

    monkeypatch.setattr(rig.store, "append", racing)
    await rig.tell(CompactSession(), "c1")
    records = await rig.until(seen(ChapterOpened, 2) if what == "reset" else lambda found: "Rejoined" in str(found))
    await rig.rest()
    await asyncio.sleep(0.05)
    records = await rig.rest()
    assert raced and only(records, SummaryStarted) == [] == only(records, SummaryWritten)
    check_context(records)
    assert len(only(records, SummaryRequested)) == 1
    assert not (await rig.store.session(ID)).compaction_requested, "the wish went with its chapter"
    assert (await rig.sessions.get(ID)).activity == "idle"


async def test_messages_that_come_while_a_turn_is_made_to_fit_keep_their_order(rig: LifecycleRig) -> None:
    rig.agents.limits = limits(threshold=0, limit=1_200)
    rig.agents.summary_seconds = 60
    await rig.create("summary hang")
    await quiet(rig)
    await turns(rig, 2)
    await rig.say(LONG, "long")
    await rig.until(seen(SummaryStarted))
    await rig.say("say then", "m8")
    await rig.say("say at last", "m9")
    await rig.say("say also", "m10", "steer")
    rig.model.go.set()
    records = await rig.until(seen(TurnFinished, 6))
    history = check_ended(records)
    assert [turn.inputs for turn in history.turns[3:]] == [["long", "m10"], ["m8"], ["m9"]]
    [made] = only(records, SummaryWritten)
    assert isinstance(made, SummaryWritten) and made.covers_turn == 2, "ended turns only, the last one word by word"


@pytest.mark.parametrize(("how", "attempts"), [("ok", 1), ("empty", 2), ("too_long", 2), ("hang", 1)])
async def test_a_note_for_the_next_chapter_is_tried_again_once_if_another_attempt_may_help(
    rig: LifecycleRig, how: str, attempts: int
) -> None:
    """The second one gets less to read, and may be written by another model. One that hangs would only hang again."""
    await rig.create(f"summary {how}")
    await quiet(rig)
    await rig.reset("r1", note=True)
    started = [one for one in only(await rig.records(), SummaryStarted) if one.purpose == "hand_over"]  # type: ignore[attr-defined]
    assert len(started) == attempts
    opened = (await rig.sessions.get(ID)).chapter.opened
    assert opened is not None and opened.hand_over_from == ("model" if how == "ok" else "digest")


@pytest.mark.parametrize("how", ["echo", "fail"])
async def test_a_secret_in_a_message_is_in_no_summary_note_or_digest(rig: LifecycleRig, how: str) -> None:
    await rig.create(f"say {SECRET}\nsummary {how}")
    await quiet(rig)
    await rig.reset("r1", note=True)
    opened = (await rig.sessions.get(ID)).chapter.opened
    assert opened is not None and opened.hand_over_from == ("model" if how == "echo" else "digest")
    assert SECRET not in opened.hand_over and "[hidden: the value of A_KEY]" in opened.hand_over
    await rig.tell(UndoReset(), "u1")
    await rig.tell(CompactSession(), "c1")
    await quiet(rig)
    made = only(await rig.records(), SummaryWritten)
    assert len(made) == (2 if how == "echo" else 0) and SECRET not in str(made)
