"""The seam for agents that are processes of their own: a driver that is killed at every commit.

After each crash the next gateway reads on where the log says: each line of the agent is in the log once and in order,
its process ran once, and the turn ends right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from holdfast.domain.commands import SendMessage, StopTurn
from holdfast.domain.events import Record
from holdfast.domain.events.external_agent import DriverOutputRead
from holdfast.domain.events.session import ModelResponded, ToolCallFinished, TurnFinished, WaitOpened
from holdfast.store.sqlite.store import SqliteStore
from tests.forked_lives import ForkedLives
from tests.runtime.mortal import Fault, Killed, mortal_store
from tests.runtime.rig import ID
from tests.runtime.script_driver import DriverLife, agent_task

LINES = ["call a", "call b", "result b second", "result a first", "ask c", "result c allow", "answer that is all"]
COMMITS = 13
"""The message, the turn, its process, four lines, the question, its answer, the lease, that the agent has it, two
lines. The end of the process is one more, somewhere."""


def lines(records: Sequence[Record]) -> list[str]:
    """The lines that the agent must have said for this log, in order."""
    found: list[str] = []
    asks = {r.event.call for r in records if isinstance(r.event, WaitOpened)}
    for record in records:
        match record.event:
            case ModelResponded(calls=[]) as e:
                found.append(f"answer {e.text}")
            case ModelResponded(calls=calls):
                found += [f"{'ask' if call.call in asks else 'call'} {call.call}" for call in calls]
            case ToolCallFinished(call=call, output=output):
                found.append(f"result {call} {output}")
            case _:
                continue
    return found


def check(directory: Path, records: Sequence[Record]) -> None:
    assert lines(records) == LINES, "each line is in the log once, in order"
    assert (directory / "cwd" / "ran").read_text() == "x\n", "the process ran once"
    (end,) = [r.event for r in records if isinstance(r.event, TurnFinished)]
    assert (end.outcome, end.reason) == ("done", "the agent had nothing more to do")
    offsets = [r.event.offset for r in records if isinstance(r.event, DriverOutputRead)]
    assert offsets == sorted(offsets) and offsets[-1] == len("\n".join(LINES)) + 1


async def crash(directory: Path, fault: Fault) -> None:
    store = mortal_store(_database(directory), fault)
    first = DriverLife(directory, store)

    async def client() -> None:
        try:
            await first.start()
            await first.to_the_end()
        except Killed:
            pass

    working, death = asyncio.create_task(client()), asyncio.create_task(store.died.wait())
    await asyncio.wait({working, death}, return_when=asyncio.FIRST_COMPLETED)
    for task in (working, death):
        task.cancel()
    await asyncio.gather(working, death, return_exceptions=True)
    await first.rig.close()
    assert store.died.is_set()
    second = DriverLife(directory)
    await second.start()
    records = await second.to_the_end()
    await second.rig.close()
    check(directory, records)


def _database(directory: Path) -> Path:
    (directory / "home").mkdir(parents=True)
    return directory / "home" / "holdfast.db"


async def test_an_agent_that_is_a_process_works_on_a_session(tmp_path: Path) -> None:
    store = mortal_store(_database(tmp_path))
    life = DriverLife(tmp_path, store)
    await life.start()
    check(tmp_path, await life.to_the_end())
    await life.rig.close()
    assert COMMITS <= store.writes <= COMMITS + 1


async def test_promise_1_a_crash_at_any_commit_neither_loses_nor_repeats_a_line(tmp_path: Path) -> None:
    faults = [Fault(at, "before") for at in range(1, COMMITS + 1)]
    await asyncio.gather(*(crash(tmp_path / str(fault.at), fault) for fault in faults))


async def test_an_agent_continues_while_no_gateway_is_there(tmp_path: Path) -> None:
    """A goodbye is no interruption: nothing is written about it."""
    first = DriverLife(tmp_path)
    await first.start("echo x >> ran; echo call a; until [ -e go ]; do sleep 0.01; done; echo result a; echo answer b")
    await first.until(DriverOutputRead)
    await first.rig.close()
    (tmp_path / "cwd" / "go").touch()
    second = DriverLife(tmp_path)
    await second.start()
    records = await second.to_the_end()
    await second.rig.close()
    assert lines(records) == ["call a", "result a ", "answer b"]
    assert (tmp_path / "cwd" / "ran").read_text() == "x\n"
    assert not {"TurnSuspended", "TurnResumed", "ModelInterrupted"} & {type(r.event).__name__ for r in records}


async def test_a_stop_ends_the_agent_and_its_last_lines_are_read(tmp_path: Path) -> None:
    life = DriverLife(tmp_path)
    await life.start("echo call a; until [ -e go ]; do sleep 0.01; done; echo never")
    await life.until(DriverOutputRead)
    task = agent_task(await life.rig.sessions.get(ID))
    await life.rig.say(ID, StopTurn())
    records = await life.until(TurnFinished)
    assert (await life.rig.tasks.wait_ended(task)).signal == "SIGKILL"
    await life.rig.close()
    (call,) = [r.event for r in records if isinstance(r.event, ToolCallFinished)]
    assert call.outcome == "unknown" and "stopped by ann" in call.output
    assert isinstance(records[-1].event, TurnFinished) and records[-1].event.outcome == "stopped"


async def test_an_agent_that_ends_without_an_answer_fails_the_turn(tmp_path: Path) -> None:
    life = DriverLife(tmp_path)
    await life.start("echo call a; exit 3")
    records = await life.until(TurnFinished)
    await life.rig.close()
    end = records[-1].event
    assert isinstance(end, TurnFinished) and (end.outcome, end.reason) == (
        "failed",
        "The script ended without an answer.",
    )


async def test_a_session_of_a_driver_that_is_missing_says_so_and_is_at_rest(tmp_path: Path) -> None:
    life = DriverLife(tmp_path)
    await life.start("say hello", driver="unheard-of")
    records = await life.until(TurnFinished)
    assert [type(r.event).__name__ for r in records[2:]] == ["TurnStarted", "TurnFinished"]
    end = records[-1].event
    assert isinstance(end, TurnFinished) and end.problem is not None
    assert (end.outcome, end.problem.code) == ("failed", "unknown_driver")
    assert "the driver 'unheard-of'" in end.problem.message and "builtin, acp, command, script" in end.problem.hint
    await life.rig.runner.sweep()
    assert life.rig.runner.last_failure(ID) is None and len(await life.records()) == len(records)
    await life.rig.close()


async def test_a_message_that_cannot_join_waits_for_the_next_turn(tmp_path: Path) -> None:
    life = DriverLife(tmp_path)
    await life.start("echo call a; until [ -e go ]; do sleep 0.01; done; echo result a; echo answer b")
    await life.until(DriverOutputRead)
    await life.rig.say(ID, SendMessage(text="echo answer c", mode="steer"))
    (life.cwd / "go").touch()
    records = await life.until(TurnFinished, 2)
    await life.rig.close()
    assert lines(records) == ["call a", "result a ", "answer b", "answer c"]
    assert "InputsJoined" not in {type(r.event).__name__ for r in records}


def test_promise_1_kill_9_neither_loses_nor_repeats_a_line(tmp_path: Path) -> None:
    with ForkedLives("tests.runtime.driver_lives") as forked:
        for write in (2, 3, 5, 11):
            home = str(tmp_path / str(write))
            assert forked.live("drive", kill_on=f"write-{write}", directory=home).killed
            assert forked.live("drive", directory=home).status == 0
    for directory in tmp_path.iterdir():
        check(directory, asyncio.run(read(directory)))


async def read(directory: Path) -> list[Record]:
    life = DriverLife(directory, SqliteStore(directory / "home" / "holdfast.db"))  # the killed ones had that engine
    records = await life.records()
    await life.rig.close()
    return records
