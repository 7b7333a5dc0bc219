"""Resets beside everything that happens in the same moment, on a real store and with real commands."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.commands import ArchiveSession, UndoReset, UndoTurn, WhatRuns
from holdfast.domain.errors import Conflict
from holdfast.domain.events import task_stream
from holdfast.domain.events.chapter import ChapterOpened, SummaryWritten
from holdfast.domain.events.session import InputReceived
from holdfast.domain.events.task import TaskLifetimeSet, TaskStopRequested
from holdfast.domain.history import UserMessage
from holdfast.sessions import Caller
from holdfast.store.contract import Append, Appended, CommandKey, Write
from tests.actors import person
from tests.domain.chapters import check_context
from tests.domain.history import check_ended
from tests.eventually import PATIENCE
from tests.lifecycle.rig import LifecycleRig
from tests.runtime.rig import ID, kinds, only
from tests.store.rebuilt import check_projections

pytestmark = pytest.mark.usefixtures("each_engine")
ONE, TWO = "11" * 8, "22" * 8
ROUNDS = 12


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LifecycleRig]:
    rig = await LifecycleRig(tmp_path).start()
    try:
        async with asyncio.timeout(PATIENCE):
            await rig.create("say hello")
            await rig.rest()
            yield rig
    finally:
        await rig.end_all()
        await rig.close()


async def in_a_moment(chance: random.Random) -> None:
    for _ in range(chance.randrange(12)):
        await asyncio.sleep(0)


async def insist_on_reset(rig: LifecycleRig, id: str, chance: random.Random) -> None:
    await in_a_moment(chance)
    while True:
        try:
            await rig.reset(id, note=chance.random() < 0.5)
        except Conflict:
            await rig.rest()
        else:
            return


async def test_promise_6_messages_and_resets_in_any_order_lose_nothing(rig: LifecycleRig) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    await interleave(rig, random.Random(seed), ROUNDS)


@pytest.mark.proof
async def test_promise_6_messages_and_resets_in_any_order_many_times(rig: LifecycleRig) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    await interleave(rig, random.Random(seed), 300)


async def interleave(rig: LifecycleRig, chance: random.Random, rounds: int) -> None:
    said = [f"create {ID}"]
    for number in range(rounds):

        async def say(id: str) -> None:
            await in_a_moment(chance)
            await rig.say(f"say {id}", id)

        ids = [f"m{number}.{n}" for n in range(3)]
        acts = [say(id) for id in ids]
        acts += [insist_on_reset(rig, f"r{number}", chance), insist_on_reset(rig, f"r{number}", chance)]
        chance.shuffle(acts)
        await asyncio.gather(*acts)
        said += ids
        await rig.rest()
    records = await rig.records()
    history = check_ended(records)
    assert sorted(history.accepted) == sorted(said), "each once"
    assert len(only(records, ChapterOpened)) == rounds, "a reset under one id is one"
    for end in range(1, len(records) + 1, 7):
        check_context(records[:end])
    check_projections(rig.home / "holdfast.db")


async def test_the_same_id_resets_and_undoes_once(rig: LifecycleRig) -> None:
    first = await rig.reset("r1")
    await rig.say("say more", "m2")
    again = await rig.reset("r1")
    assert (again.version, again.seq, again.duplicate) == (first.version, first.seq, True)
    await rig.rest()
    await rig.tell(UndoReset(), "u1")
    assert (await rig.tell(UndoReset(), "u1")).duplicate
    records = await rig.records()
    assert [kinds(records).count(kind) for kind in ("ChapterOpened", "ChapterRejoined")] == [1, 1]
    heard = [one.text for one in (await rig.sessions.get(ID)).visible_messages() if isinstance(one, UserMessage)]
    assert heard == ["say hello", "say more"]
    with pytest.raises(Conflict, match="no reset to undo"):
        await rig.tell(UndoReset(), "u2")


async def test_an_undo_leads_back_to_when_that_chapter_began(rig: LifecycleRig) -> None:
    """What is older than its chapter is called stale, so the row must know when that was."""
    await rig.reset("r1")
    second = (await rig.sessions.get(ID)).chapter.opened_at
    await rig.say("say more", "m2")
    await rig.rest()
    await rig.reset("r2")
    await rig.tell(UndoReset(), "u1")
    row = await rig.store.session(ID)
    assert second is not None and (row.chapter, row.chapter_at) == (2, second.at)
    await rig.tell(UndoReset(), "u2")
    row = await rig.store.session(ID)
    assert (row.chapter, row.chapter_at) == (1, 0)


async def test_a_turn_of_another_chapter_is_not_undone(rig: LifecycleRig) -> None:
    await rig.reset("r1")
    with pytest.raises(Conflict, match="no turn to undo"):
        await rig.tell(UndoTurn(), "undo")


# --- what runs --------------------------------------------------------------------------------------


async def test_what_runs_is_asked_about_handed_over_or_stopped(rig: LifecycleRig) -> None:
    await rig.background("sleep 600", task=ONE)
    await rig.background("sleep 600", task=TWO, lifetime="chapter")
    with pytest.raises(Conflict, match="2 still running"):
        await rig.reset("r1")
    assert only(await rig.records(), ChapterOpened) == []
    await rig.reset("r2", running="keep")
    opened = (await rig.sessions.get(ID)).chapter.opened
    assert opened is not None and {one.task for one in opened.kept} == {ONE, TWO} and opened.stopped == []
    kept = [record.event for record in await rig.store.load(task_stream(TWO), after=0)]
    assert [event.lifetime for event in kept if isinstance(event, TaskLifetimeSet)] == ["persist"]
    await rig.reset("r3", running="stop")
    for task in (ONE, TWO):
        row = await rig.tasks.wait_ended(task)
        assert row.state == "stopped" and "a person chose to stop it" in row.stop_reason


async def test_a_command_started_while_the_note_is_written_is_not_passed_over(rig: LifecycleRig) -> None:
    await rig.say("summary hang", "m2")
    await rig.rest()
    resetting = asyncio.create_task(rig.reset("r1", note=True))
    await rig.model.hangs.wait()
    await rig.background("sleep 600", task=ONE)
    rig.model.go.set()
    with pytest.raises(Conflict, match="1 still running"):
        await resetting


async def test_a_message_while_the_note_is_written_comes_first_and_there_is_no_reset(rig: LifecycleRig) -> None:
    await rig.say("summary hang", "m2")
    await rig.rest()
    resetting = asyncio.create_task(rig.reset("r1", note=True))
    await rig.model.hangs.wait()
    await rig.say("hold on", "m3")
    with pytest.raises(Conflict, match="still at work: turn 3"):
        await resetting
    rig.model.go.set()
    records = await rig.rest()
    assert only(records, ChapterOpened) == [] == only(records, SummaryWritten)
    session = await rig.sessions.get(ID)
    assert session.chapter.requested is None, "nobody waits for the note any more"
    assert not (await rig.store.session(ID)).compaction_requested


class Ends:
    """A command that ends in the very moment in which something is written about its session."""

    def __init__(self, rig: LifecycleRig, kind: type) -> None:
        self._append = rig.store.append
        self._rig = rig
        self._kind = kind
        self.raced = False

    async def append(self, wanted: Append) -> Appended:
        events = [event for write in wanted.writes for event in write.events]
        if not self.raced and any(isinstance(event, self._kind) for event in events):
            self.raced = True
            await self._rig.tasks.supervisor.kill(ONE, grace=0)
            await self._rig.tasks.wait_ended(ONE)
        return await self._append(wanted)


async def test_a_reset_and_the_end_of_a_command(rig: LifecycleRig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.background("sleep 600", task=ONE)
    ends = Ends(rig, ChapterOpened)
    monkeypatch.setattr(rig.store, "append", ends.append)
    await rig.reset("r1", running="stop")
    assert ends.raced
    [opened] = only(await rig.records(), ChapterOpened)
    assert isinstance(opened, ChapterOpened) and opened.stopped == [], "it had ended already"
    events = [record.event for record in await rig.store.load(task_stream(ONE), after=0)]
    assert not [event for event in events if isinstance(event, TaskStopRequested)]
    assert kinds(await rig.records()).count("NoteReceived") == 1


@pytest.mark.parametrize("choice", ["keep", "stop"])
async def test_an_archive_and_the_end_of_a_command(
    rig: LifecycleRig, monkeypatch: pytest.MonkeyPatch, choice: WhatRuns
) -> None:
    await rig.background("sleep 600", task=ONE)
    ends = Ends(rig, TaskLifetimeSet if choice == "keep" else TaskStopRequested)
    monkeypatch.setattr(rig.store, "append", ends.append)
    caller = Caller(CommandKey("a1", "d"), person("ann"))

    async def what_runs() -> tuple[Write, ...]:
        return await rig.running_tasks.chosen_writes(ID, choice, by=caller.by, what="its session was archived")

    await rig.sessions.execute(ID, ArchiveSession(), caller, also=what_runs)
    assert ends.raced and (await rig.sessions.get(ID)).archived
    assert (await rig.store.task(ONE)).state != "running"


async def test_a_message_after_a_reset_belongs_to_the_new_chapter(rig: LifecycleRig) -> None:
    await rig.reset("r1")
    await rig.say("say anew", "m2")
    records = await rig.rest()
    assert kinds(records).count("InputReceived") == 2
    session = await rig.sessions.get(ID)
    heard = [one.text for one in session.visible_messages() if isinstance(one, UserMessage)]
    assert heard == ["say anew"] and session.visible_messages()[0].turn == 0
    assert [event.text for event in only(records, InputReceived) if isinstance(event, InputReceived)] == [
        "say hello",
        "say anew",
    ]
