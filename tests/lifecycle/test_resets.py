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
from tests.lifecycle.house import House
from tests.runtime.rig import ID, kinds, only
from tests.store.rebuilt import check_projections

pytestmark = pytest.mark.usefixtures("each_engine")
ONE, TWO = "11" * 8, "22" * 8
ROUNDS = 12


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = await House(tmp_path).start()
    try:
        async with asyncio.timeout(PATIENCE):
            await house.create("say hello")
            await house.rest()
            yield house
    finally:
        await house.end_all()
        await house.close()


async def in_a_moment(chance: random.Random) -> None:
    for _ in range(chance.randrange(12)):
        await asyncio.sleep(0)


async def insist_on_reset(house: House, id: str, chance: random.Random) -> None:
    await in_a_moment(chance)
    while True:
        try:
            await house.reset(id, note=chance.random() < 0.5)
        except Conflict:
            await house.rest()
        else:
            return


async def test_promise_6_messages_and_resets_in_any_order_lose_nothing(house: House) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    await interleave(house, random.Random(seed), ROUNDS)


@pytest.mark.proof
async def test_promise_6_messages_and_resets_in_any_order_many_times(house: House) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    await interleave(house, random.Random(seed), 300)


async def interleave(house: House, chance: random.Random, rounds: int) -> None:
    said = [f"create {ID}"]
    for number in range(rounds):

        async def say(id: str) -> None:
            await in_a_moment(chance)
            await house.say(f"say {id}", id)

        ids = [f"m{number}.{n}" for n in range(3)]
        acts = [say(id) for id in ids]
        acts += [insist_on_reset(house, f"r{number}", chance), insist_on_reset(house, f"r{number}", chance)]
        chance.shuffle(acts)
        await asyncio.gather(*acts)
        said += ids
        await house.rest()
    records = await house.records()
    history = check_ended(records)
    assert sorted(history.accepted) == sorted(said), "each once"
    assert len(only(records, ChapterOpened)) == rounds, "a reset under one id is one"
    for end in range(1, len(records) + 1, 7):
        check_context(records[:end])
    check_projections(house.home / "holdfast.db")


async def test_the_same_id_resets_and_undoes_once(house: House) -> None:
    first = await house.reset("r1")
    await house.say("say more", "m2")
    again = await house.reset("r1")
    assert (again.version, again.seq, again.duplicate) == (first.version, first.seq, True)
    await house.rest()
    await house.tell(UndoReset(), "u1")
    assert (await house.tell(UndoReset(), "u1")).duplicate
    records = await house.records()
    assert [kinds(records).count(kind) for kind in ("ChapterOpened", "ChapterRejoined")] == [1, 1]
    heard = [one.text for one in (await house.sessions.get(ID)).visible_messages() if isinstance(one, UserMessage)]
    assert heard == ["say hello", "say more"]
    with pytest.raises(Conflict, match="no reset to undo"):
        await house.tell(UndoReset(), "u2")


async def test_an_undo_leads_back_to_when_that_chapter_began(house: House) -> None:
    """What is older than its chapter is called stale, so the row must know when that was."""
    await house.reset("r1")
    second = (await house.sessions.get(ID)).chapter.opened_at
    await house.say("say more", "m2")
    await house.rest()
    await house.reset("r2")
    await house.tell(UndoReset(), "u1")
    row = await house.store.session(ID)
    assert second is not None and (row.chapter, row.chapter_at) == (2, second.at)
    await house.tell(UndoReset(), "u2")
    row = await house.store.session(ID)
    assert (row.chapter, row.chapter_at) == (1, 0)


async def test_a_turn_of_another_chapter_is_not_undone(house: House) -> None:
    await house.reset("r1")
    with pytest.raises(Conflict, match="no turn to undo"):
        await house.tell(UndoTurn(), "undo")


# --- what runs --------------------------------------------------------------------------------------


async def test_what_runs_is_asked_about_handed_over_or_stopped(house: House) -> None:
    await house.background("sleep 600", task=ONE)
    await house.background("sleep 600", task=TWO, lifetime="chapter")
    with pytest.raises(Conflict, match="2 still running"):
        await house.reset("r1")
    assert only(await house.records(), ChapterOpened) == []
    await house.reset("r2", running="keep")
    opened = (await house.sessions.get(ID)).chapter.opened
    assert opened is not None and {one.task for one in opened.kept} == {ONE, TWO} and opened.stopped == []
    kept = [record.event for record in await house.store.load(task_stream(TWO), after=0)]
    assert [event.lifetime for event in kept if isinstance(event, TaskLifetimeSet)] == ["persist"]
    await house.reset("r3", running="stop")
    for task in (ONE, TWO):
        row = await house.tasks.wait_ended(task)
        assert row.state == "stopped" and "a person chose to stop it" in row.stop_reason


async def test_a_command_started_while_the_note_is_written_is_not_passed_over(house: House) -> None:
    await house.say("summary hang", "m2")
    await house.rest()
    resetting = asyncio.create_task(house.reset("r1", note=True))
    await house.model.hangs.wait()
    await house.background("sleep 600", task=ONE)
    house.model.go.set()
    with pytest.raises(Conflict, match="1 still running"):
        await resetting


async def test_a_message_while_the_note_is_written_comes_first_and_there_is_no_reset(house: House) -> None:
    await house.say("summary hang", "m2")
    await house.rest()
    resetting = asyncio.create_task(house.reset("r1", note=True))
    await house.model.hangs.wait()
    await house.say("hold on", "m3")
    with pytest.raises(Conflict, match="still at work: turn 3"):
        await resetting
    house.model.go.set()
    records = await house.rest()
    assert only(records, ChapterOpened) == [] == only(records, SummaryWritten)
    session = await house.sessions.get(ID)
    assert session.chapter.requested is None, "nobody waits for the note any more"
    assert not (await house.store.session(ID)).compaction_requested


class Ends:
    """A command that ends in the very moment in which something is written about its session."""

    def __init__(self, house: House, kind: type) -> None:
        self._append = house.store.append
        self._house = house
        self._kind = kind
        self.raced = False

    async def append(self, wanted: Append) -> Appended:
        events = [event for write in wanted.writes for event in write.events]
        if not self.raced and any(isinstance(event, self._kind) for event in events):
            self.raced = True
            await self._house.tasks.supervisor.kill(ONE, grace=0)
            await self._house.tasks.wait_ended(ONE)
        return await self._append(wanted)


async def test_a_reset_and_the_end_of_a_command(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.background("sleep 600", task=ONE)
    ends = Ends(house, ChapterOpened)
    monkeypatch.setattr(house.store, "append", ends.append)
    await house.reset("r1", running="stop")
    assert ends.raced
    [opened] = only(await house.records(), ChapterOpened)
    assert isinstance(opened, ChapterOpened) and opened.stopped == [], "it had ended already"
    events = [record.event for record in await house.store.load(task_stream(ONE), after=0)]
    assert not [event for event in events if isinstance(event, TaskStopRequested)]
    assert kinds(await house.records()).count("NoteReceived") == 1


@pytest.mark.parametrize("choice", ["keep", "stop"])
async def test_an_archive_and_the_end_of_a_command(
    house: House, monkeypatch: pytest.MonkeyPatch, choice: WhatRuns
) -> None:
    await house.background("sleep 600", task=ONE)
    ends = Ends(house, TaskLifetimeSet if choice == "keep" else TaskStopRequested)
    monkeypatch.setattr(house.store, "append", ends.append)
    caller = Caller(CommandKey("a1", "d"), person("ann"))

    async def what_runs() -> tuple[Write, ...]:
        return await house.running_tasks.chosen_writes(ID, choice, by=caller.by, what="its session was archived")

    await house.sessions.execute(ID, ArchiveSession(), caller, also=what_runs)
    assert ends.raced and (await house.sessions.get(ID)).archived
    assert (await house.store.task(ONE)).state != "running"


async def test_a_message_after_a_reset_is_heard_in_the_new_chapter(house: House) -> None:
    await house.reset("r1")
    await house.say("say anew", "m2")
    records = await house.rest()
    assert kinds(records).count("InputReceived") == 2
    session = await house.sessions.get(ID)
    heard = [one.text for one in session.visible_messages() if isinstance(one, UserMessage)]
    assert heard == ["say anew"] and session.visible_messages()[0].turn == 0
    assert [event.text for event in only(records, InputReceived) if isinstance(event, InputReceived)] == [
        "say hello",
        "say anew",
    ]
