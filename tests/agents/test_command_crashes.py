"""A gateway that is killed at any moment while a command-line agent works: no word is lost, doubled or reordered, the
prompt is given once, and the agent has one process a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.domain.events import AnyEvent
from holdfast.domain.events.external_agent import AgentAttached, DriverOutputRead
from holdfast.domain.events.session import TurnFinished
from tests.agents.life import AgentLife, said
from tests.runtime.mortal import Fault, How, Killed, MortalStore, mortal_store

SAID = ["w0 w1 w2", "call 1-1-a", "done 1-1-a result of a", "w3 w4", "call 1-1-b", "done 1-1-b result of b", "w5 w6"]


def script(directory: Path) -> list[str]:
    return [f"!touch {directory / 'ran'}", "!say w0 w1 w2", "!call a ls", "!say w3 w4", "!call b ls", "!say w5 w6"]


def check(directory: Path, format: str, events: list[AnyEvent]) -> None:
    assert said(events) == (["w0 w1 w2\nw3 w4\nw5 w6"] if format == "text" else SAID)
    assert (directory / "ran").read_text() == "x\n", "the prompt was carried out once"
    (end,) = [event for event in events if isinstance(event, TurnFinished)]
    assert (end.outcome, end.reason) == ("done", "the agent had nothing more to do")
    reads = [event for event in events if isinstance(event, DriverOutputRead)]
    assert [read.offset for read in reads] == sorted(read.offset for read in reads)
    assert len({read.task for read in reads}) == 1
    assert len([event for event in events if isinstance(event, AgentAttached)]) == 1


@asynccontextmanager
async def life_of(directory: Path, format: str, store: MortalStore | None = None) -> AsyncIterator[AgentLife]:
    life = AgentLife(directory, store=store, command=format)
    try:
        yield life
    finally:
        await life.close()


async def work(life: AgentLife, directory: Path) -> list[AnyEvent]:
    await life.start()
    if not (await life.records()):
        await life.create(*script(directory))
    await life.rest()
    return await life.events()


def store_in(directory: Path, fault: Fault | None = None) -> MortalStore:
    (directory / "home").mkdir(parents=True, mode=0o700)
    file = directory / "home" / "holdfast.db"
    return mortal_store(file) if fault is None else mortal_store(file, fault)


async def crash(directory: Path, format: str, fault: Fault) -> None:
    store = store_in(directory, fault)
    async with life_of(directory, format, store) as first:
        working = asyncio.create_task(work(first, directory))
        death = asyncio.create_task(store.died.wait())
        await asyncio.wait({working, death}, return_when=asyncio.FIRST_COMPLETED)
        for task in (working, death):
            task.cancel()
        for result in await asyncio.gather(working, death, return_exceptions=True):
            assert isinstance(result, bool | list | asyncio.CancelledError | Killed), result
    async with life_of(directory, format) as second:
        events = await work(second, directory)
    check(directory, format, events)


@pytest.mark.parametrize("format", ["claude", "codex", "text"])
async def test_promise_1_a_crash_at_any_write_loses_doubles_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    (tmp_path / "memory").mkdir()
    monkeypatch.setenv("SCRIPTED_HOME", str(tmp_path / "memory"))
    store = store_in(tmp_path / "whole")
    async with life_of(tmp_path / "whole", format, store) as life:
        check(tmp_path / "whole", format, await work(life, tmp_path / "whole"))
    assert store.writes > 4
    hows: list[How] = ["before", "after"]
    faults = [Fault(at, how) for how in hows for at in range(1, store.writes + 1)]
    await asyncio.gather(*(crash(tmp_path / f"{one.how}-{one.at}", format, one) for one in faults))
