"""Commands on sessions: carried out once per id, decided on the current state, whatever comes between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import sessions as sessions_module
from holdfast.domain.commands import RenameSession, SendMessage
from holdfast.domain.errors import Conflict, NotFound, Rejected
from holdfast.domain.events.session import InputReceived, ModelRequested, SessionRenamed, StopRequested
from holdfast.sessions import FORGET_AT_ONCE, Caller, Sessions
from holdfast.store.contract import Append, CommandKey, Write
from tests.actors import person
from tests.runtime.rig import ID, STREAM, Rig, only, seen


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """Without a worker, unless a test starts one."""
    rig = Rig(tmp_path)
    yield rig
    await rig.close()


async def test_a_retried_creation_makes_one_session(rig: Rig) -> None:
    first = await rig.create("say hi")
    again = await rig.create("say hi")
    assert again.duplicate
    assert (again.stream, again.version, again.seq) == (first.stream, first.version, first.seq)
    assert len(await rig.records()) == 2


async def test_a_retried_message_is_said_once(rig: Rig) -> None:
    await rig.create()
    answers = await asyncio.gather(*(rig.say("hello", "m1") for _ in range(10)))
    assert {answer.version for answer in answers} == {2}
    assert len(only(await rig.records(), InputReceived)) == 1


async def test_a_retried_stop_has_the_answer_of_the_first_though_the_turn_is_over(rig: Rig) -> None:
    await rig.start()
    await rig.create("hold on")
    await rig.until(seen(ModelRequested))
    first = await rig.stop_turn()
    await rig.rest()
    again = await rig.stop_turn()
    assert (again.version, again.duplicate) == (first.version, True)
    assert len(only(await rig.records(), StopRequested)) == 1
    with pytest.raises(Conflict, match="nothing to stop"):
        await rig.stop_turn("another id")


async def test_a_command_id_that_meant_something_else_is_a_conflict(rig: Rig) -> None:
    await rig.create()
    await rig.say("hello", "m1")
    other = Caller(CommandKey("m1", "another digest"), person("ann"))
    with pytest.raises(Conflict, match="used before"):
        await rig.sessions.execute(ID, SendMessage(text="other"), other)


async def test_messages_sent_at_the_same_time_are_all_stored(rig: Rig) -> None:
    await rig.create()
    await asyncio.gather(*(rig.say(f"hello {n}", f"m{n}") for n in range(12)))
    inputs = only(await rig.records(), InputReceived)
    assert len({event.input for event in inputs if isinstance(event, InputReceived)}) == 12


async def test_messages_and_work_at_the_same_time_are_all_stored(rig: Rig) -> None:
    await rig.start()
    await rig.create("say hello")
    await asyncio.gather(*(rig.say(f"say {n}", f"m{n}") for n in range(10)))
    records = await rig.rest()
    assert len(only(records, InputReceived)) == 11


async def test_it_catches_up_with_what_others_wrote(rig: Rig) -> None:
    await rig.create()
    assert (await rig.sessions.get(ID)).title == ""
    await rig.store.append(Append((Write(STREAM, (SessionRenamed(title="new", by=person("t")),)),), 1))
    assert (await rig.sessions.get(ID)).title == "new"


async def test_a_refused_command_leaves_no_trace(rig: Rig) -> None:
    await rig.create()
    with pytest.raises(Rejected):
        await rig.tell(RenameSession(title=" "), "r1")
    await rig.tell(RenameSession(title="fine"), "r1")
    assert (await rig.sessions.get(ID)).title == "fine"


async def test_one_session_is_found_without_looking_at_all_others(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def look(_: object) -> bool:
        nonlocal looks
        looks += 1
        return False  # all of them are at work

    monkeypatch.setattr(sessions_module._CachedSession, "at_rest", property(look))
    for number in range(sessions_module.KEPT + 2 * FORGET_AT_ONCE):
        await rig.sessions.get(f"{number:016x}")
    looks = 0
    await rig.sessions.get(ID)
    assert looks <= FORGET_AT_ONCE


# --- deletion -------------------------------------------------------------------------------------


def caller(id: str) -> Caller:
    return Caller(CommandKey(id, "d"), person("ann"))


async def test_a_session_at_rest_is_deleted_and_a_retry_has_the_same_answer(rig: Rig) -> None:
    await rig.create()
    first = await rig.sessions.delete(ID, caller("d1"))
    again = await rig.sessions.delete(ID, caller("d1"))
    assert (again.seq, again.duplicate) == (first.seq, True)
    with pytest.raises(NotFound):
        await rig.sessions.delete(ID, caller("d2"))
    with pytest.raises(NotFound):
        await rig.say("anybody there?", "m1")
    with pytest.raises(Conflict, match="deleted"):
        await rig.store.append(Append((Write(STREAM, (SessionRenamed(title="x", by=person("t")),)),), 1))


async def test_a_session_at_work_is_not_deleted(rig: Rig) -> None:
    await rig.create("say hi")
    with pytest.raises(Conflict, match="at work"):
        await rig.sessions.delete(ID, caller("d1"))


async def test_a_message_and_a_deletion_race_and_one_wins(tmp_path: Path) -> None:
    for number in range(10):
        home = tmp_path / str(number)
        home.mkdir()
        rig = Rig(home)
        await rig.create()
        elsewhere = Sessions(rig.store, rig.clock)
        said, gone = await asyncio.gather(
            rig.say("hello", "m1"), elsewhere.delete(ID, caller("d1")), return_exceptions=True
        )
        assert isinstance(said, BaseException) != isinstance(gone, BaseException)
        await rig.close()
