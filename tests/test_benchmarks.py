"""The benchmarks' own parts: the clients of whole turns with a real gateway, and what is made of its samples."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

from benchmarks import turn_peer
from benchmarks.measure import in_turn
from benchmarks.profiled_gateway import called
from benchmarks.turn_client import NOTES
from benchmarks.turn_profile import Cost, Samples, function_and_call, package, tables
from benchmarks.turns import Gateway, fill_home, started

MORE_THAN_SILENT_CONNECTIONS = 20
"""A gateway takes 16 connections that have not shown a credential."""
LOOP = "/usr/lib/python3.11/asyncio/runners.py:86 Runner.run"
STORE = "/home/ann/holdfast/src/holdfast/store/sqlite/writer.py:180 Writer._commit"
THREAD = "/usr/lib/python3.11/threading.py:988 Thread._bootstrap"
ROUTE = "/home/ann/.venv/lib/python3.11/site-packages/starlette/routing.py:142 app"


async def test_each_conversation_makes_its_turn_in_a_gateway_that_is_sampled(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(NOTES)
    filled = await fill_home(tmp_path, 2, conversations=MORE_THAN_SILENT_CONNECTIONS, earlier=2)
    file = tmp_path / "samples.jsonl"

    def measured(gateway: Gateway) -> None:
        os.kill(gateway.pid, signal.SIGUSR1)
        burst = gateway.burst(0)
        assert burst.turns == MORE_THAN_SILENT_CONNECTIONS
        assert burst.gateway_cpu > 0 < burst.client_cpu
        assert burst.commits > 0

    with started(filled, "benchmarks.profiled_gateway", str(file)) as gateway:
        await asyncio.to_thread(measured, gateway)
    with file.open() as lines:
        samples = Samples.of(lines, cost := Cost(in_loop=8.0, in_threads=2.0))
    assert any(name.startswith("holdfast.") for name in samples.own(package))
    assert sum(samples.own(package).values()) >= cost.in_loop  # the stacks of the event loop are recognised
    assert "## Own time by package" in "\n".join(tables(samples, cost))


def test_own_and_cumulative_time_of_samples() -> None:
    start = "/home/ann/holdfast/src/holdfast/app.py:83 serve"
    stacks = [
        (3, [start, LOOP, STORE, "-> self._connection.execute"]),
        (1, [start, LOOP, ROUTE, "<string>:2 made.<locals>.__init__"]),
        (5, [THREAD, STORE]),
    ]
    lines = [json.dumps({"samples": count, "stack": stack}) for count, stack in stacks]
    samples = Samples.of(lines, Cost(in_loop=8.0, in_threads=1.0))
    assert samples.own(package) == {"SQLite": 6.0, "HTTP: starlette": 2.0, "holdfast.store": 1.0}
    assert samples.own(function_and_call) == {
        "holdfast.store.sqlite.writer:180 Writer._commit -> self._connection.execute": 6.0,
        "starlette.routing:142 app -> __init__ of a dataclass": 2.0,
        "holdfast.store.sqlite.writer:180 Writer._commit": 1.0,
    }
    everything = samples.cumulative(lambda _: True)
    assert everything["holdfast.store.sqlite.writer:180 Writer._commit"] == 7.0
    assert everything["asyncio.runners:86 Runner.run"] == 8.0
    assert "holdfast.app:83 serve" not in everything


def test_a_call_is_found_by_its_instruction() -> None:
    code = test_a_call_is_found_by_its_instruction.__code__
    found = set(map(called, [code] * len(code.co_code), range(0, len(code.co_code), 2)))
    assert found == {"", "set", "map", "len", "range"}


async def test_the_first_round_does_not_count() -> None:
    rounds = {"ours": 0.0, "theirs": 10.0}

    async def ours() -> float:
        rounds["ours"] += 1
        return rounds["ours"]

    async def theirs() -> float:
        rounds["theirs"] += 1
        return rounds["theirs"]

    assert await in_turn(ours, theirs, rounds=2) == [[2.0, 3.0], [12.0, 13.0]]


async def test_every_conversation_of_a_peer_makes_at_least_one_turn() -> None:
    made: list[str] = []

    async def turn(session: str) -> None:
        made.append(session)

    async def fill(session: str, messages: int) -> None:
        made.append(f"{session} with {messages}")

    async def load(_: str) -> int:
        return 7

    runtime, sessions = turn_peer.Runtime(turn, fill, load), list[str]()
    await turn_peer.answer(runtime, sessions, {"sessions": ["a", "b"], "earlier": 10})
    assert (await turn_peer.answer(runtime, sessions, {"seconds": 0}))["count"] == 2
    assert (await turn_peer.answer(runtime, sessions, {"load": "a"}))["count"] == 7
    assert made == ["a with 10", "b with 10", "a", "b"]
