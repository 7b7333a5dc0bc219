"""A turn on a real store: what it writes, in which order, and what cuts it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.events.actor import THE_CLOCK
from holdfast.domain.events.session import (
    InputsJoined,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnStarted,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.next_step import TurnLimits
from holdfast.store.contract import Append, Appended
from holdfast.store.sqlite.store import SqliteStore
from tests.domain.history import check, check_ended
from tests.eventually import PATIENCE, eventually
from tests.runtime.rig import ID, PROBLEM, RETRY_MS, SECRET, STREAM, Rig, call, kinds, only, seen
from tests.store.rebuilt import check_projections

pytestmark = pytest.mark.usefixtures("each_engine")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = await Rig(tmp_path).start()
    yield rig
    await rig.close()
    check_projections(tmp_path / "holdfast.db")


async def outcomes(rig: Rig) -> list[tuple[str, str]]:
    """How each tool call ended."""
    found = only(await rig.records(), ToolCallFinished)
    return [(event.outcome, event.output) for event in found if isinstance(event, ToolCallFinished)]


async def test_a_message_is_answered(rig: Rig) -> None:
    await rig.create("say hello")
    records = await rig.rest()
    assert kinds(records) == [
        "SessionCreated",
        "InputReceived",
        "TurnStarted",
        "ModelRequested",
        "ModelResponded",
        "TurnFinished",
    ]
    assert check_ended(records).turns[0].text == "hello"


async def test_promise_1_the_intent_is_written_before_the_effect(rig: Rig, tmp_path: Path) -> None:
    await rig.create("call " + call("stall", letter="a"))

    async def posted() -> bool:
        return (tmp_path / "posted").exists()

    await eventually(posted)
    assert kinds(await rig.records())[-1] == "ToolCallStarted"
    await rig.stop_turn()
    await rig.rest()


async def test_tools_are_run_in_order_and_the_model_gets_their_results(rig: Rig, tmp_path: Path) -> None:
    write, read = call("write", path="a.txt", content="hello"), call("read", path="a.txt")
    await rig.create(f"call {write} & {read}\nsay done")
    history = check_ended(await rig.rest())
    assert (tmp_path / "a.txt").read_text() == "hello"
    assert await outcomes(rig) == [("done", "Wrote 5 bytes to a.txt."), ("done", "hello")]
    assert history.turns[0].text == "done"


async def test_a_request_that_may_be_tried_again_is_when_its_time_has_come(rig: Rig) -> None:
    await rig.create("again hello world")
    records = await rig.rest()
    assert kinds(records)[3:] == [
        "ModelRequested",
        "ModelInterrupted",
        "WaitOpened",
        "WaitAnswered",
        "ModelRequested",
        "ModelResponded",
        "TurnFinished",
    ]
    [cut], [wait], [answer] = (only(records, kind) for kind in (ModelInterrupted, WaitOpened, WaitAnswered))
    assert isinstance(cut, ModelInterrupted) and cut.text == "hello"
    assert isinstance(wait, WaitOpened) and isinstance(answer, WaitAnswered)
    assert (answer.wait, answer.answer, answer.by) == (wait.wait, wait.default, THE_CLOCK)
    asked, answered = records[3].at, next(one.at for one in records if one.event is answer)
    assert wait.until is not None
    assert asked + RETRY_MS <= wait.until <= answered  # counted from its failure, some time after it was sent
    assert check_ended(records).turns[0].text == "hello world"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (call("dance"), "There is no tool 'dance'; there is: break, post, read, stall, write."),
        (call("read", path="missing"), "missing does not exist."),
        (call("read", road="a"), "The arguments do not fit"),
        ("read not-json", "The arguments do not fit"),
        (call("read", path="../outside"), "outside of the working directory"),
    ],
)
async def test_a_call_that_cannot_be_carried_out_is_an_outcome(rig: Rig, wanted: str, says: str) -> None:
    await rig.create(f"call {wanted}\nsay I see")
    history = check_ended(await rig.rest())
    [(outcome, output)] = await outcomes(rig)
    assert outcome == "failed"
    assert says in output
    assert history.turns[0].text == "I see"


async def test_a_key_in_a_file_does_not_get_into_the_log(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"KEY={SECRET}\n")
    await rig.create("call " + call("read", path=".env"))
    records = await rig.rest()
    assert await outcomes(rig) == [("done", "KEY=[hidden: the value of A_KEY]\n")]
    assert SECRET not in str(records)


async def test_a_failing_model_fails_the_turn_and_the_next_one_works(rig: Rig) -> None:
    await rig.create("fail")
    await rig.rest()
    await rig.say("say better", "again")
    records = await rig.rest()
    assert only(records, ModelFailed) == [ModelFailed(turn=1, step=1, problem=PROBLEM, text="before the failure")]
    assert [turn.outcome for turn in check_ended(records).turns] == ["failed", "done"]


@pytest.mark.parametrize("script", ["bug", "call " + call("break", letter="x")])
async def test_promise_7_a_bug_ends_the_turn_and_says_so(rig: Rig, script: str) -> None:
    await rig.create(script)
    records = await rig.rest()
    finished = records[-1].event
    assert isinstance(finished, TurnFinished)
    assert finished.problem is not None
    assert finished.problem.code == "internal"
    assert "RuntimeError: a bug" in finished.problem.message
    check_ended(records)
    assert rig.streaming.get(STREAM) is None
    await rig.say("say still alive", "again")
    assert check_ended(await rig.rest()).turns[1].text == "still alive"


async def test_promise_6_what_had_arrived_before_a_bug_is_kept(rig: Rig) -> None:
    await rig.create("bug")
    [cut] = only(await rig.rest(), ModelInterrupted)
    assert isinstance(cut, ModelInterrupted)
    assert cut.text == "before the bug"


async def test_a_turn_that_takes_too_many_steps_fails(tmp_path: Path) -> None:
    rig = await Rig(tmp_path, limits=TurnLimits(steps=2)).start()
    await rig.create("\n".join(["call " + call("read", path="x")] * 5))
    finished = (await rig.rest())[-1].event
    assert isinstance(finished, TurnFinished)
    assert finished.problem is not None and finished.problem.code == "step_limit"
    await rig.close()


# --- words while it works -------------------------------------------------------------------------


async def test_queued_messages_wait_for_their_own_turn(rig: Rig) -> None:
    await rig.create("hold one")
    await rig.until(seen(ModelRequested))
    for number in (2, 3):
        await rig.say(f"say {number}", f"m{number}")
    rig.model.go.set()
    turns = check_ended(await rig.rest()).turns
    assert [(turn.inputs, turn.text) for turn in turns] == [([f"create {ID}"], "one"), (["m2"], "2"), (["m3"], "3")]


async def test_what_steers_joins_the_turn(rig: Rig) -> None:
    await rig.create("hold one")
    await rig.until(seen(ModelRequested))
    await rig.say("say two", "m2", "steer")
    rig.model.go.set()
    records = await rig.rest()
    assert only(records, InputsJoined) == [InputsJoined(turn=1, inputs=["m2"])]
    assert check_ended(records).turns[0].text == "one\ntwo"


async def test_an_interrupt_cuts_the_model_and_keeps_what_it_said(rig: Rig) -> None:
    await rig.create("hold half a sentence")
    await rig.until(seen(ModelRequested))
    await rig.say("say queued", "m2")
    await rig.say("say urgent", "m3", "interrupt")
    records = await rig.rest()
    [cut] = only(records, ModelInterrupted)
    assert isinstance(cut, ModelInterrupted)
    assert cut.text == "half a sentence"
    turns = check_ended(records).turns
    assert [(turn.inputs[0], turn.outcome) for turn in turns[1:]] == [("m3", "done"), ("m2", "done")]
    assert turns[0].outcome == "stopped"


async def test_a_stop_cuts_the_model(rig: Rig) -> None:
    await rig.create("hold half")
    await rig.until(seen(ModelRequested))
    await rig.stop_turn()
    records = await rig.rest()
    assert check_ended(records).turns[0].outcome == "stopped"
    assert rig.streaming.get(STREAM) is None
    assert await rig.store.partial(STREAM) is None


async def test_promise_7_a_stop_cuts_a_tool_and_its_outcome_is_unknown(rig: Rig) -> None:
    await rig.create(f"call {call('stall', letter='a')} & {call('post', letter='b')}")
    await rig.until(seen(ToolCallStarted))
    await rig.stop_turn()
    await rig.rest()
    assert [outcome for outcome, _ in await outcomes(rig)] == ["unknown", "failed"]


async def test_a_stop_that_comes_with_the_answer_does_not_hurt(rig: Rig) -> None:
    """The two race; whoever wins, the turn ends once and the history is whole."""
    await rig.create("say begin")
    await rig.rest()
    for number in range(20):
        await rig.say("hold x", f"m{number}")
        await rig.until(seen(ModelRequested, number + 2))
        stop = asyncio.create_task(rig.stop_turn(f"s{number}"))
        rig.model.go.set()
        await asyncio.gather(stop, return_exceptions=True)
        await rig.rest()
        rig.model.go.clear()
    history = check_ended(await rig.records())
    assert {turn.outcome for turn in history.turns} <= {"done", "stopped"}


class LateStore(SqliteStore):
    """An answer is taken at once and committed late; whoever asked for it cannot take it back."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.taken, self.commit = asyncio.Event(), asyncio.Event()

    async def append(self, append: Append) -> Appended:
        if any(isinstance(event, ModelResponded) for write in append.writes for event in write.events):
            return await asyncio.shield(asyncio.create_task(self._late(append)))
        return await super().append(append)

    async def _late(self, append: Append) -> Appended:
        self.taken.set()
        await self.commit.wait()
        return await super().append(append)


@pytest.mark.parametrize("by", ["a stop", "a goodbye"])
async def test_a_cut_waits_for_the_write_that_is_under_way(tmp_path: Path, by: str) -> None:
    store = LateStore(tmp_path / "holdfast.db")
    rig = await Rig(tmp_path, store=store).start()
    await rig.create("say hello")
    await store.taken.wait()
    cut = asyncio.create_task(rig.stop_turn() if by == "a stop" else rig.runner.stop())
    for _ in range(20):
        await rig.records()
    store.commit.set()
    await cut
    await rig.until(lambda records: kinds(records)[-1] in ("TurnFinished", "TurnSuspended"))
    history = check(await rig.records())
    assert history.turns[0].text == "hello"
    assert history.interruptions == 0
    await rig.close()


async def test_the_text_so_far_is_saved_while_it_is_streamed(rig: Rig) -> None:
    await rig.create("slow one two three four five six")
    partial = await eventually(lambda: rig.store.partial(STREAM))
    assert partial is not None
    assert "one two three four five six".startswith(partial.text)
    await rig.rest()
    assert await rig.store.partial(STREAM) is None


async def test_many_sessions_work_at_once(rig: Rig) -> None:
    ids = [f"{number:016x}" for number in range(20)]
    await asyncio.gather(*(rig.create(f"say {id}", session=id) for id in ids))
    for id in ids:
        assert check_ended(await rig.rest(session=id)).turns[0].text == id

    async def nobody() -> bool:
        return rig.runner.working == []

    await eventually(nobody)


async def test_a_worker_keeps_its_session_though_many_others_come_and_go(rig: Rig) -> None:
    """Folded sessions are kept in a bounded cache, but never one that somebody works on is dropped."""
    await rig.create("hold a while\nsay end")
    await rig.until(seen(ModelRequested))
    others = [f"{number:016x}" for number in range(300)]
    await asyncio.gather(*(rig.create(session=id) for id in others))
    await asyncio.gather(*(rig.sessions.get(id) for id in others))
    rig.model.go.set()
    records = await asyncio.wait_for(rig.rest(), PATIENCE)
    assert check_ended(records).turns[0].text == "a while"
    assert len(only(records, TurnStarted)) == 1


async def test_promise_1_what_was_shown_is_on_disk_soon_even_when_nothing_more_comes(rig: Rig) -> None:
    await rig.create("hold three words only")

    async def kept() -> str:
        partial = await rig.store.partial(STREAM)
        return "" if partial is None else partial.text

    assert await eventually(kept) == "three words only"
    rig.model.go.set()
    await rig.rest()
    assert await rig.store.partial(STREAM) is None
