"""A gateway that is killed at any moment while an external agent works: no word is lost, doubled or reordered, the
prompt is sent once, so is a message that joins its work, and a permission is answered once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.domain.events import AnyEvent
from holdfast.domain.events.external_agent import AgentAttached, DriverOutputRead
from holdfast.domain.events.session import InputsJoined, TurnFinished, WaitAnswered, WaitOpened
from tests.agents.life import AgentLife, said
from tests.runtime.mortal import Fault, How, Killed, MortalStore, mortal_store

SAID = [
    *("w0 w1 w2", "call 1-a", "done 1-a result of a", "[steered: look here] w3 w4"),
    *("call 1-b", "done 1-b yes", '{"action": "accept", "content": {"a": "x", "b": 7}} w5 w6'),
]


ANSWERS = ("allow", "x", "7")


def script(directory: Path) -> list[str]:
    ran = directory / "ran"
    before = [f"!touch {ran}", "!say w0 w1 w2", "!call a read x", "!steered 1"]
    form = {"message": "?", "requestedSchema": {"properties": {"a": {}, "b": {"type": "integer"}}}}
    return [*before, "!say w3 w4", "!ask b rm x", "!form " + json.dumps(form), "!say w5 w6"]


def check(directory: Path, events: list[AnyEvent]) -> None:
    assert one_text(said(events)) == SAID
    (joined,) = [event for event in events if isinstance(event, InputsJoined)]
    assert joined.inputs == ["steer-it"]
    remembered = "".join(file.read_text() for file in (directory / "memory").iterdir())
    assert remembered.count("look here") == 1, "it was sent once"
    assert (directory / "ran").read_text() == "x\n", "the prompt was carried out once"
    assert len([event for event in events if isinstance(event, WaitOpened)]) == len(ANSWERS)
    assert [event.answer for event in events if isinstance(event, WaitAnswered)] == ["yes", "x", "7"]
    (end,) = [event for event in events if isinstance(event, TurnFinished)]
    assert (end.outcome, end.reason) == ("done", "the agent had nothing more to do")
    reads = [event for event in events if isinstance(event, DriverOutputRead)]
    assert [read.offset for read in reads] == sorted(read.offset for read in reads)
    assert len([event for event in events if isinstance(event, AgentAttached)]) == 1


def one_text(said: list[str]) -> list[str]:
    """Put texts together: a message that joins divides them."""
    found: list[str] = []
    for one in said:
        is_text = not one.startswith(("call ", "done "))
        if is_text and found and not found[-1].startswith(("call ", "done ")):
            found[-1] += f" {one}"
        else:
            found.append(one)
    return found


@asynccontextmanager
async def life_of(directory: Path, store: MortalStore | None = None) -> AsyncIterator[AgentLife]:
    (directory / "memory").mkdir(parents=True, exist_ok=True)
    life = AgentLife(directory, "steers", f"memory={directory / 'memory'}", store=store)
    try:
        yield life
    finally:
        await life.close()


async def work(life: AgentLife, directory: Path) -> list[AnyEvent]:
    await life.start()
    if not (await life.records()):
        await life.create(*script(directory))
    await life.say("look here", id="steer-it", mode="steer")
    for number, answer in enumerate(ANSWERS, start=1):
        await life.answer_once(answer, number=number)
    await life.rest()
    return await life.events()


async def crash(directory: Path, fault: Fault) -> None:
    (directory / "home").mkdir(parents=True, mode=0o700)
    store = mortal_store(directory / "home" / "holdfast.db", fault)
    async with life_of(directory, store) as first:
        working = asyncio.create_task(work(first, directory))
        death = asyncio.create_task(store.died.wait())
        await asyncio.wait({working, death}, return_when=asyncio.FIRST_COMPLETED)
        for task in (working, death):
            task.cancel()
        for result in await asyncio.gather(working, death, return_exceptions=True):
            assert isinstance(result, bool | list | asyncio.CancelledError | Killed), result
    async with life_of(directory) as second:
        events = await work(second, directory)
        await second.end_agents()
    check(directory, events)


async def writes_of_a_turn(directory: Path) -> int:
    (directory / "home").mkdir(parents=True, mode=0o700)
    store = mortal_store(directory / "home" / "holdfast.db")
    async with life_of(directory, store) as life:
        check(directory, await work(life, directory))
        await life.end_agents()
    return store.writes


@pytest.mark.parametrize("how", ["before", "after"])
async def test_promise_1_a_crash_at_any_write_loses_doubles_and_repeats_nothing(tmp_path: Path, how: How) -> None:
    writes = await writes_of_a_turn(tmp_path / "whole")
    assert writes > 8
    await asyncio.gather(*(crash(tmp_path / f"{how}-{at}", Fault(at, how)) for at in range(1, writes + 1)))
