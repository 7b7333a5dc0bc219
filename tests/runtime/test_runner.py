"""Workers and their ends: restarts, rivals, old work, a disk that is full."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from holdfast.domain.errors import Conflict, Corrupt, Fenced, Unavailable
from holdfast.domain.events.session import (
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    StopRequested,
    TurnResumed,
    TurnSuspended,
    WaitOpened,
)
from holdfast.domain.next_step import TurnLimits
from holdfast.runtime.runner import RESUME_AT_ONCE
from holdfast.store.contract import Append, Lease, Subscription, Wanted, Write
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import RuntimeTimings, Timings
from tests.domain.history import check, check_ended
from tests.eventually import PATIENCE, eventually
from tests.rig import StoppedClock
from tests.runtime.mortal import Fault, mortal_store
from tests.runtime.rig import ID, STREAM, Rig, kinds, only, seen

pytestmark = pytest.mark.usefixtures("each_engine")
HOUR = 3_600_000


async def test_promise_1_a_shutdown_keeps_the_text_so_far_and_the_next_start_continues(tmp_path: Path) -> None:
    rig = await Rig(tmp_path).start()

    async def heard() -> str:
        streaming = rig.streaming.get(STREAM)
        return streaming.text if streaming is not None else ""

    await rig.create("hold the whole answer")
    await rig.until(seen(ModelRequested))
    await eventually(heard)
    await rig.close()

    rig = Rig(tmp_path)
    assert kinds(await rig.records())[-1] == "TurnSuspended"
    partial = await rig.store.partial(STREAM)
    assert partial is not None
    assert partial.text == "the whole answer"
    assert (await rig.store.session(ID)).turn_state == "suspended"
    rig.model.go.set()
    await rig.start()
    records = await rig.rest()
    [cut], [resumed] = only(records, ModelInterrupted), only(records, TurnResumed)
    assert isinstance(cut, ModelInterrupted) and isinstance(resumed, TurnResumed)
    assert cut.text == "the whole answer"
    assert resumed.reason == "the gateway was shut down"
    assert check_ended(records).turns[0].text == "the whole answer"
    await rig.close()


async def test_a_shutdown_while_idle_writes_nothing(tmp_path: Path) -> None:
    rig = await Rig(tmp_path).start()
    await rig.create("say hello")
    before = await rig.rest()
    await rig.close()
    rig = Rig(tmp_path)
    assert await rig.records() == before
    await rig.close()


async def test_a_message_that_nobody_has_taken_is_taken_at_the_next_start(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.create("say hello")
    await rig.close()
    rig = await Rig(tmp_path).start()
    records = await rig.rest()
    assert "TurnResumed" not in kinds(records)
    assert check_ended(records).turns[0].text == "hello"
    await rig.close()


# --- promise 2 ------------------------------------------------------------------------------------


async def test_promise_2_a_worker_that_lost_its_lease_writes_nothing_more(tmp_path: Path) -> None:
    """Frozen in the middle of an answer; another one finished the turn when it wakes up."""
    frozen = await Rig(tmp_path).start()
    await frozen.create("hold one\nsay two")
    await frozen.until(seen(ModelRequested))
    rival = Rig(tmp_path, store=frozen.store)
    rival.model.go.set()
    await rival.start()
    before = await rival.rest()
    frozen.model.go.set()
    await frozen.runner.stop()
    assert await rival.records() == before
    history = check_ended(before)
    assert history.turns[0].text == "one"
    assert len(only(before, ModelResponded)) == 1
    await rival.close()


async def test_promise_2_a_lease_of_an_earlier_life_is_refused(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.create("hold one")
    old = await rig.store.claim(STREAM, holder="old")
    await rig.close()
    rig = await Rig(tmp_path).start()
    await rig.until(seen(ModelRequested))
    late = Append((Write(STREAM, (TurnSuspended(turn=1, interruption="shutdown", reason="late"),)),), 1, lease=old)
    with pytest.raises(Fenced):
        await rig.store.append(late)
    with pytest.raises(Fenced):
        await rig.store.append(Append(late.writes, 1, lease=Lease(STREAM, old.token + 1000)))
    await rig.close()


# --- the budget -----------------------------------------------------------------------------------


async def interrupted(home: Path, clock: StoppedClock) -> None:
    """A gateway that dies in the middle of an answer."""
    store = mortal_store(home / "holdfast.db", Fault(5, "before"))
    rig = Rig(home, store=store, clock=clock)
    await rig.create("hold on")
    await rig.start()
    await rig.until(seen(ModelRequested))
    store.died.set()
    await rig.close()


async def test_old_work_waits_for_a_person_and_a_message_wakes_it(tmp_path: Path) -> None:
    clock = StoppedClock(HOUR)
    await interrupted(tmp_path, clock)
    clock.move(10 * HOUR)
    rig = await Rig(tmp_path, clock=clock).start()
    await rig.until(seen(WaitOpened))
    assert (await rig.store.session(ID)).turn_state == "waiting"
    rig.model.go.set()
    await rig.say("say and this", "m2")
    turns = check_ended(await rig.rest()).turns
    assert [turn.text for turn in turns] == ["on", "and this"]
    await rig.close()


async def test_old_work_that_waits_can_be_stopped(tmp_path: Path) -> None:
    clock = StoppedClock(HOUR)
    await interrupted(tmp_path, clock)
    clock.move(10 * HOUR)
    rig = await Rig(tmp_path, clock=clock).start()
    await rig.until(seen(WaitOpened))
    await rig.stop_turn()
    history = check_ended(await rig.rest())
    assert [turn.outcome for turn in history.turns] == ["stopped"]
    await rig.close()


async def test_a_turn_that_takes_the_gateway_down_is_not_resumed_for_ever(tmp_path: Path) -> None:
    clock = StoppedClock(HOUR)
    await interrupted(tmp_path, clock)
    for attempt in range(5):
        store = mortal_store(tmp_path / "holdfast.db")
        rig = await Rig(tmp_path, store=store, limits=TurnLimits(resume_attempts=2), clock=clock).start()
        await rig.until(seen(ModelRequested, attempt + 2) if attempt < 2 else seen(WaitOpened))
        store.died.set()
        await rig.close()
    rig = Rig(tmp_path)
    records = await rig.records()
    assert len(only(records, TurnResumed)) == 2
    assert kinds(records)[-1] == "WaitOpened"
    check(records)
    await rig.close()


# --- a disk that is full --------------------------------------------------------------------------


async def test_promise_1_a_message_taken_before_the_disk_was_full_is_worked_on_afterwards(tmp_path: Path) -> None:
    store = mortal_store(tmp_path / "holdfast.db", Fault(2, "refuse"))
    rig = await Rig(tmp_path, store=store).start()
    await rig.create("say hello")
    assert check_ended(await rig.rest()).turns[0].text == "hello"
    assert store.struck
    await rig.close()


async def test_a_shutdown_does_not_wait_for_a_full_disk(tmp_path: Path) -> None:
    store = mortal_store(tmp_path / "holdfast.db", Fault(5, "full"))
    rig = await Rig(tmp_path, store=store).start()
    await rig.create("say hello")
    await rig.until(seen(ModelRequested))
    async with asyncio.timeout(PATIENCE):
        await rig.close()
    rig = await Rig(tmp_path).start()
    assert check_ended(await rig.rest()).turns[0].text == "hello"
    await rig.close()


async def test_a_stop_that_no_worker_saw_is_honoured_at_the_next_start(tmp_path: Path) -> None:
    rig = await Rig(tmp_path).start()
    await rig.create("hold on")
    await rig.until(seen(ModelRequested))
    await rig.runner.stop()
    await rig.stop_turn()
    await rig.store.close()
    rig = await Rig(tmp_path).start()
    records = await rig.rest()
    assert len(only(records, StopRequested)) == 1
    assert check_ended(records).turns[0].outcome == "stopped"
    await rig.close()


# --- whatever ends a worker, another one starts ---------------------------------------------------


class Flaky(SqliteStore):
    """Fails once, in the middle of what a worker does."""

    def __init__(self, path: Path, error: Exception) -> None:
        super().__init__(path)
        self.errors = [error]

    def subscribe(
        self, stream: str | None, wanted: Wanted | None = None, *, elsewhere: Wanted | None = None
    ) -> Subscription:
        task = asyncio.current_task()
        if self.errors and task is not None and task.get_name() == f"worker {ID}":
            raise self.errors.pop()
        return super().subscribe(stream, wanted)


@pytest.mark.parametrize(
    "error",
    [
        Fenced("Another worker has it."),
        Unavailable("The disk is full."),
        Conflict("It stands somewhere else."),
        Corrupt("It does not match."),
        sqlite3.OperationalError("disk I/O error"),
        RuntimeError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_ends_a_worker_another_one_starts(tmp_path: Path, error: Exception) -> None:
    store = Flaky(tmp_path / "holdfast.db", error)
    rig = await Rig(tmp_path, store=store, timings=Timings(runtime=RuntimeTimings(retry=0.01))).start()
    await rig.create("say hello")
    assert check_ended(await rig.rest()).turns[0].text == "hello"
    assert store.errors == []
    await rig.close()


async def test_why_explains_the_pause_of_a_failed_worker_and_a_message_ends_it(tmp_path: Path) -> None:
    store, timings = Flaky(tmp_path / "holdfast.db", Corrupt("It does not match.")), RuntimeTimings(retry=3600.0)
    rig = await Rig(tmp_path, store=store, timings=Timings(runtime=timings)).start()
    await rig.create("say hello")

    async def last_failure() -> str:
        found = rig.runner.last_failure(ID)
        return found.reason if found is not None else ""

    assert await eventually(last_failure) == "It does not match."
    await rig.say("say again", "m2")
    assert [turn.text for turn in check_ended(await rig.rest()).turns] == ["hello", "again"]
    assert rig.runner.last_failure(ID) is None
    await rig.close()


class Deaf(SqliteStore):
    """Tells nobody who follows the whole log of anything."""

    def subscribe(
        self, stream: str | None, wanted: Wanted | None = None, *, elsewhere: Wanted | None = None
    ) -> Subscription:
        return super().subscribe(stream, (lambda *_: False) if stream is None else wanted)


async def test_a_sweep_finds_what_is_open_and_nobody_works_on(tmp_path: Path) -> None:
    timings = Timings(runtime=RuntimeTimings(sweep=0.05))
    rig = await Rig(tmp_path, store=Deaf(tmp_path / "holdfast.db"), timings=timings).start()
    await rig.create("say hello")
    assert check_ended(await rig.rest()).turns[0].text == "hello"
    await rig.close()


async def test_after_a_start_open_turns_continue_a_few_at_a_time(tmp_path: Path) -> None:
    ids = [f"{number:016x}" for number in range(RESUME_AT_ONCE + 3)]
    rig = Rig(tmp_path)
    for id in ids:
        await rig.create("hold on", session=id)
    await rig.close()

    async def asked(rig: Rig) -> int:
        return sum([seen(ModelRequested)(await rig.records(id)) for id in ids])

    rig = await Rig(tmp_path, timings=Timings(runtime=RuntimeTimings(resume=3600.0))).start()

    async def few() -> bool:
        return await asked(rig) == RESUME_AT_ONCE

    await eventually(few)
    assert len(rig.runner.working) == RESUME_AT_ONCE
    await rig.say("hold more", "m2", session=ids[-1])  # what somebody asks for does not wait in line

    async def one_more() -> bool:
        return await asked(rig) == RESUME_AT_ONCE + 1

    await eventually(one_more)
    rig.model.go.set()
    for id in ids:
        await rig.rest(session=id)
    await rig.close()
