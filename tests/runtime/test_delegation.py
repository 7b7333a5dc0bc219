"""Agent tasks: a turn detached at the moment of its end, a start that is requested twice, files that are reported."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.commands import CreateSession
from holdfast.domain.events import session_stream
from holdfast.domain.events.session import InputReceived, ToolCallFinished, TurnFinished
from holdfast.domain.events.task import TaskStarted
from holdfast.domain.task import task_of_call
from holdfast.sessions import Caller
from holdfast.store.contract import Append, Appended, CommandKey
from holdfast.tasks import files as task_files
from holdfast.tasks.agents import MOST_AGENTS, AgentTasks
from holdfast.tasks.files import LOG, SUMMARY, TaskFileExporter
from holdfast.tasks.git_snapshots import GitSnapshots
from holdfast.tasks.log import TaskLog
from tests.actors import person
from tests.board.rig import BoardRig
from tests.eventually import PATIENCE
from tests.runtime.rig import ID, Rig, call

ONE, TWO = "11" * 8, "22" * 8


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = await Rig(tmp_path).start()
    try:
        async with asyncio.timeout(PATIENCE):
            yield rig
    finally:
        await rig.close()


def agent_tasks(rig: Rig, *, most: int = MOST_AGENTS) -> AgentTasks:
    task_log = TaskLog(rig.store, rig.clock, GitSnapshots(rig.home), rig.profiles)
    return AgentTasks(rig.store, task_log=task_log, sessions=rig.sessions, clock=rig.clock, most=most)


def file_exporter(rig: Rig) -> TaskFileExporter:
    changes = GitSnapshots(rig.home)
    return TaskFileExporter(rig.store, sessions=rig.sessions, changes=changes, profiles=rig.profiles)


def caller(id: str) -> Caller:
    return Caller(CommandKey(id, "digest"), person("ann"))


def work(rig: Rig, task: str, prompt: str) -> TaskStarted:
    return TaskStarted(
        task=task,
        task_kind="agent",
        title="t",
        command=prompt,
        cwd=str(rig.home),
        by=person("ann"),
        session=ID,
        worker=task,
    )


async def test_a_turn_that_is_detached_in_the_moment_of_its_end_is_a_task_that_ends(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, raced = rig.store.append, set[int]()

    async def racing(wanted: Append) -> Appended:
        ending = [event.turn for write in wanted.writes for event in write.events if isinstance(event, TurnFinished)]
        if ending and ending[0] not in raced:
            raced.update(ending)
            await agent_tasks(rig).background(ID, task=ONE, caller=caller("detach-it"))
        return await append(wanted)

    monkeypatch.setattr(rig.store, "append", racing)
    await rig.create("say done at last")
    await rig.rest()
    row = await rig.store.task(ONE)
    assert (row.state, row.summary) == ("done", "done at last")


async def test_a_start_that_is_requested_twice_is_no_second_agent_and_is_not_refused(rig: Rig) -> None:
    await rig.create()
    started, starter = work(rig, ONE, "hold on"), agent_tasks(rig, most=1)
    first = await starter.start(started, profile="script", caller=caller("delegate-it"))
    again = await starter.start(started, profile="script", caller=caller("delegate-it"))
    assert (again.duplicate, again.version) == (True, first.version)


async def test_a_file_that_cannot_be_written_does_not_end_the_following_of_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, troubles = task_files._replace, [OSError(errno.ENOSPC, "no space")]

    def full(file: Path, text: str) -> None:
        if troubles:
            raise troubles.pop()
        replace(file, text)

    monkeypatch.setattr(task_files, "_replace", full)
    await rig.create()
    exporter = file_exporter(rig)
    await exporter.start()
    await agent_tasks(rig).start(work(rig, ONE, "say one"), profile="script", caller=caller("delegate-1"))
    while troubles:
        await asyncio.sleep(0.01)
    await agent_tasks(rig).start(work(rig, TWO, "say two"), profile="script", caller=caller("delegate-2"))
    while not (rig.home / TWO / SUMMARY).exists():
        await asyncio.sleep(0.01)
    await exporter.stop()
    assert (rig.home / TWO / SUMMARY).read_text() == "two"


async def test_the_file_of_a_running_task_is_read_once_and_not_at_every_call(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, looks = task_files._last_version, list[Path]()

    def looking(file: Path) -> int | None:
        looks.append(file)
        return look(file)

    monkeypatch.setattr(task_files, "_last_version", looking)
    await rig.create()
    exporter = file_exporter(rig)
    await exporter.start()
    letters = [f"call {call('post', letter=letter)}" for letter in "abcdef"]
    prompt = "\n".join([*letters, "say posted"])
    await agent_tasks(rig).start(work(rig, ONE, prompt), profile="script", caller=caller("delegate-1"))
    while not (rig.home / ONE / SUMMARY).exists():
        await asyncio.sleep(0.01)
    await exporter.stop()
    lines = (rig.home / ONE / LOG).read_text().splitlines()
    assert [json.loads(line)["event"]["kind"] for line in lines] == [
        *["ModelResponded", "ToolCallStarted", "ToolCallFinished"] * 6,
        "ModelResponded",
    ]
    assert len(looks) == 1


async def test_an_agent_is_woken_when_an_agent_that_it_started_is_done(tmp_path: Path) -> None:
    config = '[profiles.boss]\nmodel = "demo"\n[profiles.boss.tools]\n"*" = "allow"\n'
    rig = await BoardRig(tmp_path / "home", config=config).start()
    command = CreateSession(text=f"call {call('delegate', prompt='say found it')}")
    await rig.sessions.create(command, session=ID, profile="boss", cwd=str(tmp_path), caller=caller("create-it"))
    await rig.until_session(ID, lambda state: state.turns == 2 and state.last_turn is not None)
    records = await rig.store.load(session_stream(ID), after=0)
    woken = [record.event for record in records if isinstance(record.event, InputReceived)][1:]
    assert [(event.source, event.ref, "found it" in event.text) for event in woken] == [
        ("task", task_of_call(ID, "1.1.0"), True)
    ]
    await rig.close()


async def test_an_agent_ends_an_agent_that_it_started(tmp_path: Path) -> None:
    config = '[profiles.boss]\nmodel = "demo"\n[profiles.boss.tools]\n"*" = "allow"\n'
    rig = await BoardRig(tmp_path / "home", config=config).start()
    worker = task_of_call(ID, "1.1.0")
    lines = [f"call {call('delegate', prompt='slow 60 a b c', notify=False)}"]
    lines += [f"call {call('process', action='kill', task=worker)}"] * 2
    command = CreateSession(text="\n".join(lines))
    await rig.sessions.create(command, session=ID, profile="boss", cwd=str(tmp_path), caller=caller("create-it"))
    await rig.until_session(ID, lambda state: state.last_turn is not None)
    records = await rig.store.load(session_stream(ID), after=0)
    kills = [record.event for record in records if isinstance(record.event, ToolCallFinished)][1:]
    assert [(event.outcome, event.output.partition(":")[0]) for event in kills] == [
        ("done", "stopped"),
        ("failed", f"Task {worker} has already ended"),
    ]
    row = await rig.store.task(worker)
    assert row.state == "stopped" and f"the agent of session {ID}" in row.reason
    await rig.close()
