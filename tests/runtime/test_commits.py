"""How often a turn waits for the disk: once for the acknowledgement, once before each effect, once at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.domain.commands import SendMessage
from holdfast.domain.task import task_of_call
from holdfast.store.contract import Append, Appended, Lease
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import USUAL, RuntimeTimings, TaskTimings, Timings
from tests.board.rig import BoardRig
from tests.eventually import PATIENCE
from tests.runtime.rig import ID, Rig, call

UNHURRIED = Timings(runtime=RuntimeTimings(plan=PATIENCE))
"""On a busy machine a plan may take long."""


class CountingStore(SqliteStore):
    """Remembers what was committed together: the kinds of each append."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.commits: list[list[str]] = []

    async def append(self, append: Append) -> Appended:
        self.commits.append([type(event).__name__ for write in append.writes for event in write.events])
        return await super().append(append)

    async def claim(self, stream: str, *, holder: str) -> Lease:
        self.commits.append(["claim"])
        return await super().claim(stream, holder=holder)


async def test_a_turn_with_a_tool_call_takes_five_commits(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    store = CountingStore(tmp_path / "holdfast.db")
    rig = await Rig(tmp_path, store=store, timings=UNHURRIED).start()
    await rig.create()
    store.commits.clear()
    await rig.say(f"call {call('read', path='a.txt')}\nsay it says hello", "one")
    await rig.rest()
    assert store.commits == [
        ["InputReceived"],
        ["TurnStarted", "ModelRequested"],
        ["ModelResponded", "ToolCallStarted"],
        ["ToolCallFinished", "ModelRequested"],
        ["ModelResponded", "TurnFinished"],
    ]
    await rig.close()


@pytest.fixture
async def commands(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[tuple[BoardRig, CountingStore]]:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    store = CountingStore(home / "holdfast.db")
    timings = replace(UNHURRIED, tasks=TaskTimings(soon=request.param))
    config = '[profiles.demo.tools]\n"*" = "allow"\n'
    rig = await BoardRig(home, store=store, config=config, timings=timings).start()
    await rig.new_session(ID, cwd=cwd)
    store.commits.clear()
    yield rig, store
    await rig.close()


@pytest.mark.parametrize("commands", [PATIENCE], indirect=True)  # on a busy machine the command may take long
async def test_a_turn_with_a_command_takes_six_commits(commands: tuple[BoardRig, CountingStore]) -> None:
    rig, store = commands
    await rig.say(ID, SendMessage(text="sh exit 3"))
    await rig.rest(ID)
    assert store.commits == [
        ["InputReceived"],
        ["TurnStarted", "ModelRequested"],
        ["ModelResponded", "ToolCallStarted", "TaskStarted"],
        ["ProcessStarted", "TaskFinished"],
        ["ToolCallFinished", "ModelRequested"],
        ["ModelResponded", "TurnFinished"],
    ]


@pytest.mark.parametrize("commands", [USUAL.tasks.soon], indirect=True)
async def test_the_log_knows_the_process_of_a_command_that_does_not_end_soon(
    commands: tuple[BoardRig, CountingStore],
) -> None:
    rig, store = commands
    await rig.say(ID, SendMessage(text="sh until [ -e go ]; do sleep 0.02; done"))
    task = task_of_call(ID, "1.1.0")
    await rig.until_session(ID, lambda state: state.turn is not None and bool(state.turn.open_calls))
    row = await rig.tasks.wait_started(task)
    assert row.pid in [process.pid for process in await rig.tasks.supervisor.members(task)]
    (rig.home.parent / "cwd" / "go").touch()
    await rig.rest(ID)
    assert store.commits[3:5] == [["ProcessStarted"], ["TaskFinished"]]
