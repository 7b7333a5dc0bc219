"""How often a turn waits for the disk: once for the acknowledgement, once before each effect, once at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.domain.commands import SendMessage
from holdfast.domain.errors import Unavailable
from holdfast.domain.events import Record, session_stream
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.session import InputReceived, ModelRequested, ModelResponded, ToolCallStarted, TurnStarted
from holdfast.domain.task import task_of_call
from holdfast.store.contract import Append, Appended, Lease, Write
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import USUAL, RuntimeTimings, TaskTimings, Timings
from tests.actors import person
from tests.board.rig import BoardRig
from tests.eventually import PATIENCE
from tests.runtime.rig import ID, Rig, call, kinds, seen

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


class LateStore(SqliteStore):
    """The commit with a kind of event is in doubt: it happens only after somebody has looked whether it did."""

    def __init__(self, path: Path, late: str) -> None:
        super().__init__(path)
        self._late = late
        self._in_doubt: Append | None = None

    async def append(self, append: Append) -> Appended:
        kinds = [type(event).__name__ for write in append.writes for event in write.events]
        if self._late not in kinds:
            return await super().append(append)
        self._late, self._in_doubt = "", append
        raise Unavailable("the connection was lost in the middle of a commit")

    async def load(self, stream: str, *, after: int) -> list[Record]:
        found = await super().load(stream, after=after)
        if self._in_doubt is not None:
            late, self._in_doubt = self._in_doubt, None
            await super().append(late)
        return found


@pytest.mark.parametrize("late", ["TurnStarted", "ModelResponded", "ToolCallFinished", "TurnFinished"])
async def test_promise_1_what_is_committed_late_is_not_written_again(tmp_path: Path, late: str) -> None:
    rig = await Rig(tmp_path, store=LateStore(tmp_path / "holdfast.db", late), timings=UNHURRIED).start()
    await rig.create()
    (tmp_path / "a.txt").write_text("hello")
    await rig.say(f"call {call('read', path='a.txt')}\nsay it says hello", "one")
    await rig.rest()
    assert kinds(await rig.records())[1:] == [
        "InputReceived",
        "TurnStarted",
        "ModelRequested",
        "ModelResponded",
        "ToolCallStarted",
        "ToolCallFinished",
        "ModelRequested",
        "ModelResponded",
        "TurnFinished",
    ]
    await rig.close()


class AwayStore(SqliteStore):
    """Cannot be read for a while."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.refuses = 0
        self.is_back = asyncio.Event()

    async def load(self, stream: str, *, after: int) -> list[Record]:
        if self.refuses:
            self.refuses -= 1
            raise Unavailable("the server is away")
        self.is_back.set()
        return await super().load(stream, after=after)


async def test_an_answer_continues_while_the_store_is_away(tmp_path: Path) -> None:
    store = AwayStore(tmp_path / "holdfast.db")
    rig = await Rig(tmp_path, store=store, timings=UNHURRIED).start()
    await rig.create("hold one")
    await rig.until(seen(ModelRequested))
    store.is_back.clear()
    store.refuses = 3
    said = InputReceived(input="two", text="say two", mode="queue", by=person("ann"))
    await store.append(Append((Write(session_stream(ID), (said,)),), rig.clock.now()))  # as another node does
    await store.is_back.wait()
    rig.model.go.set()
    found = kinds(await rig.rest())
    assert (found.count("ModelResponded"), found.count("ModelRequested"), "ModelInterrupted" in found) == (2, 2, False)
    await rig.close()


ANSWER = ModelResponded(
    turn=1,
    step=1,
    text="",
    thinking="",
    calls=[Call(call="1.1.0", tool="read", arguments='{"path": "a.txt"}')],
    finish_reason="tool_calls",
    usage=Usage(),
    duration_ms=1,
)
INTENT = ToolCallStarted(turn=1, call="1.1.0", tool="read", effect="pure")


class OtherWorker(SqliteStore):
    """Just before the first commit of a turn, another worker begins it, answers once, and is lost."""

    def __init__(self, path: Path, *, in_doubt: bool) -> None:
        super().__init__(path)
        self._in_doubt = in_doubt
        self._has_begun = False

    async def append(self, append: Append) -> Appended:
        write, *others = append.writes
        if not self._has_begun and any(isinstance(event, TurnStarted) for event in write.events):
            self._has_begun = True
            longer = replace(write, events=(*write.events, ANSWER, INTENT))
            await super().append(replace(append, writes=(longer, *others), claim="another"))
            if self._in_doubt:
                raise Unavailable("the connection was lost in the middle of a commit")
        return await super().append(append)


@pytest.mark.parametrize("in_doubt", [False, True])
async def test_promise_2_worker_without_lease_picks_up_what_another_worker_left(tmp_path: Path, in_doubt: bool) -> None:
    rig = await Rig(tmp_path, store=OtherWorker(tmp_path / "holdfast.db", in_doubt=in_doubt), timings=UNHURRIED).start()
    await rig.create()
    (tmp_path / "a.txt").write_text("hello")
    await rig.say(f"call {call('read', path='a.txt')}\nsay it says hello", "one")
    assert kinds(await rig.rest())[2:] == [
        "TurnStarted",
        "ModelRequested",
        "ModelResponded",
        "ToolCallStarted",
        "TurnResumed",
        "ToolCallFinished",
        "ModelRequested",
        "ModelResponded",
        "TurnFinished",
    ]
    await rig.close()
