"""A crash while a turn waits for a command: it runs once, and its end and its code are found.

Between the start of the process and the commit that knows it the log has only the intent. A process outlives the crash,
so what the next gateway says of it comes from the directory that the intent names.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.domain.commands import CreateSession
from holdfast.domain.events import session_stream, task_stream
from holdfast.domain.events.session import ToolCallFinished, TurnFinished
from holdfast.domain.events.task import TaskFinished
from holdfast.domain.task import task_of_call
from holdfast.timings import USUAL, RuntimeTimings, TaskTimings, Timings
from tests.board.rig import BoardRig
from tests.domain.history import check_ended
from tests.eventually import PATIENCE
from tests.runtime.mortal import Fault, Killed, mortal_store
from tests.runtime.rig import ID

TASK = task_of_call(ID, "1.1.0")
CONFIG = '[profiles.demo.tools]\n"*" = "allow"\n[resume]\nattempts = 100\n'


class Life:
    """A gateway on a home, with a client that wants one command; perhaps with a fault."""

    def __init__(self, directory: Path, fault: Fault | None = None, *, soon: float = USUAL.tasks.soon) -> None:
        timings = Timings(tasks=TaskTimings(soon=soon), runtime=RuntimeTimings(plan=PATIENCE))
        for path in (directory / "home", directory / "cwd"):
            path.mkdir(parents=True, exist_ok=True)
        self._cwd = directory / "cwd"
        self._store = mortal_store(directory / "home" / "holdfast.db", fault)
        self.rig = BoardRig(directory / "home", store=self._store, config=CONFIG, timings=timings)

    async def ends(self) -> bool:
        """Live to the end of the turn, or to the crash; whether there was one."""
        client = asyncio.create_task(self._client())
        death = asyncio.create_task(self._store.died.wait())
        process = asyncio.create_task(self._until_process())
        await asyncio.wait({client, death}, return_when=asyncio.FIRST_COMPLETED)
        for task in (client, death, process):
            task.cancel()
        await asyncio.gather(client, death, process, return_exceptions=True)
        await self.rig.close()
        (self._cwd / "go").touch()
        return self._store.died.is_set()

    async def _until_process(self) -> None:
        """Let the command end when the log knows its process."""
        with self._store.subscribe(task_stream(TASK)) as changes:
            while await self._store.load(task_stream(TASK), after=1) == []:
                await changes.wait()
                changes.drain()
        (self._cwd / "go").touch()

    async def _client(self) -> None:
        rig = self.rig
        try:
            await rig.start()
            create = CreateSession(text="sh echo x >> ran; until [ -e go ]; do sleep 0.02; done; echo told; exit 3")
            await rig.sessions.create(
                create, session=ID, profile="demo", cwd=str(self._cwd), caller=rig.caller("create-it")
            )
            await rig.rest(ID)
        except Killed:
            pass


async def check(directory: Path) -> None:
    """It ran once, and everybody knows how it ended."""
    rig = Life(directory).rig
    records = await rig.store.load(session_stream(ID), after=0)
    of_task = [record.event for record in await rig.store.load(task_stream(TASK), after=0)]
    await rig.close()
    check_ended(records)
    assert (directory / "cwd" / "ran").read_text() == "x\n", "it ran once"
    (call,) = [r.event for r in records if isinstance(r.event, ToolCallFinished)]
    assert (call.outcome, call.output, call.exit_code) == ("done", "told\n[failed: exit code 3]", 3)
    assert [type(event).__name__ for event in of_task] == ["TaskStarted", "ProcessStarted", "TaskFinished"]
    assert isinstance(of_task[-1], TaskFinished) and of_task[-1].reason == "exit code 3"
    (turn,) = [r.event for r in records if isinstance(r.event, TurnFinished)]
    assert turn.outcome == "done"


async def crash(directory: Path, fault: Fault, *, soon: float) -> None:
    """With a command that ends soon, or when the log knows its process."""
    first = Life(directory, fault, soon=soon)
    if soon:
        (directory / "cwd" / "go").touch()
    assert await first.ends()
    assert not await Life(directory, soon=soon).ends()
    await check(directory)


@pytest.mark.parametrize(("soon", "writes"), [(60.0, (3, 4, 5)), (0.0, (4, 5))])
async def test_promise_3_a_crash_before_a_write_neither_loses_nor_repeats_a_command(
    tmp_path: Path, soon: float, writes: tuple[int, ...]
) -> None:
    """The writes from the intent on, up to the result of the call: see `test_commits.py`."""
    faults = [Fault(at, "before") for at in writes]
    await asyncio.gather(*(crash(tmp_path / str(fault.at), fault, soon=soon) for fault in faults))
