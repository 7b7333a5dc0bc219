"""Commands of this node whose start it did not see: a commit without an answer, or a session that has moved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from holdfast.clock import SystemClock
from holdfast.domain.commands import CreateSession
from holdfast.domain.events import session_stream, task_stream
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.session import (
    ModelRequested,
    ModelResponded,
    ToolCallStarted,
    TurnStarted,
)
from holdfast.domain.events.task import ProcessStarted, TaskFinished, TaskStarted
from holdfast.domain.task import task_of_call
from holdfast.profiles import Profiles
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.terminal import command_tools
from holdfast.sessions import Caller
from holdfast.store.contract import Append, CommandKey, Write
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.store import PostgresStore
from holdfast.timings import USUAL, StoreTimings
from tests.actors import person
from tests.eventually import PATIENCE
from tests.postgres_server import schemas
from tests.rig import GatewayRig

TIMINGS = replace(USUAL, store=StoreTimings(look=0.05, lease=PATIENCE))
SESSION, CALL = "5" * 16, "1.1.0"


class Node(GatewayRig):
    def __init__(self, home: Path, database: Database) -> None:
        home.mkdir(mode=0o700)
        self.node_store = PostgresStore(database, home / "tasks", TIMINGS.store, home.name)
        super().__init__(home, Profiles(home / "config.toml"), store=self.node_store, timings=TIMINGS)
        self.tools = {tool.name: tool for tool in command_tools(self.tasks, self.task_queries, self.clock, USUAL.tasks)}


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[tuple[Node, Node]]:
    database = schemas.take()
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as closing:
        found = []
        for name in ("gpu", "laptop"):
            node = Node(tmp_path / name, database)
            found.append(node)
            closing.push_async_callback(node.close)
            await node.node_store.announce()
            await node.tasks.start()
        yield found[0], found[1]
    schemas.give_back(database)


def on_gpu(task: str, directory: Path) -> TaskStarted:
    return TaskStarted(
        task=task,
        task_kind="process",
        title="t",
        command="echo x >> ran; exit 7",
        cwd=str(directory),
        by=person("me"),
        lifetime="persist",
        node="gpu",
    )


async def kinds_of(node: Node, task: str) -> list[type]:
    return [type(record.event) for record in await node.store.load(task_stream(task), after=0)]


async def test_promise_3_a_command_runs_although_its_node_lost_the_answer_to_its_start(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    """The log has the start, and the node that wrote it was cut off before the answer: another one has the client."""
    gpu, laptop = nodes
    started = on_gpu("ab" * 8, tmp_path)
    write = Write(task_stream(started.task), (started,), expect=0)
    await laptop.store.append(Append((write,), SystemClock().now()))
    row = await gpu.tasks.wait_ended(started.task)
    assert (row.state, row.exit_code) == ("failed", 7)
    assert (tmp_path / "ran").read_text() == "x\n"
    assert await kinds_of(laptop, started.task) == [TaskStarted, ProcessStarted, TaskFinished]


async def test_prompt_of_an_agent_is_never_run_as_a_command(nodes: tuple[Node, Node], tmp_path: Path) -> None:
    """The tasks of agents are of the node `local`, and a node may be called that."""
    gpu, laptop = nodes
    command = on_gpu("ef" * 8, tmp_path)
    agent = msgspec.structs.replace(command, task="ab" * 8, task_kind="agent", command="echo agent >> ran")
    for started in (agent, command):
        write = Write(task_stream(started.task), (started,), expect=0)
        await laptop.store.append(Append((write,), SystemClock().now()))
    await gpu.tasks.wait_ended(command.task)
    assert agent.task not in gpu.tasks._followed
    assert (tmp_path / "ran").read_text() == "x\n"
    assert await kinds_of(laptop, agent.task) == [TaskStarted]


async def test_promise_3_a_sweep_finds_a_command_that_nobody_follows(
    nodes: tuple[Node, Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, laptop = nodes
    monkeypatch.setattr(gpu.tasks, "_react", lambda *_: asyncio.sleep(0))  # the hint is lost
    started = on_gpu("cd" * 8, tmp_path)
    write = Write(task_stream(started.task), (started,), expect=0)
    await laptop.store.append(Append((write,), SystemClock().now()))
    await gpu.tasks._follower.stop()
    await gpu.tasks._follower.start()  # it begins with a sweep
    row = await gpu.tasks.wait_ended(started.task)
    assert (row.state, row.exit_code) == ("failed", 7)


async def test_promise_3_the_command_of_a_call_begins_on_its_node_when_the_session_has_moved(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    gpu, laptop = nodes
    caller = Caller(CommandKey("create-it", "digest"), person("test"))
    await gpu.sessions.create(CreateSession(), session=SESSION, profile="demo", cwd="/", caller=caller)
    task = task_of_call(SESSION, CALL)
    intent = msgspec.structs.replace(on_gpu(task, tmp_path), call=CALL, session=SESSION, foreground=True)
    call = Call(call=CALL, tool="terminal", arguments="{}")
    answer = ModelResponded(
        turn=1, step=1, text="", thinking="", calls=[call], finish_reason="stop", usage=Usage(), duration_ms=0
    )
    turn = (
        TurnStarted(turn=1, inputs=[], profile="demo"),
        ModelRequested(turn=1, step=1, attempt=1, model="m", context_version=1),
        answer,
        ToolCallStarted(turn=1, call=CALL, tool="terminal", effect="keyed"),
    )
    writes = (Write(session_stream(SESSION), turn), Write(task_stream(task), (intent,), expect=0))
    await laptop.store.append(Append(writes, SystemClock().now()))
    context = ToolContext(tmp_path, profile="demo", session=SESSION, call=CALL)
    result = await laptop.tools["terminal"].call(context, json.dumps({"command": "echo x >> ran; exit 7"}))
    assert result.end is not None and result.end.exit_code == 7
    assert (tmp_path / "ran").read_text() == "x\n"
