"""What goes wrong with external agents, by both drivers: what is said stays once and in order, what is unknown is said,
and nobody's silence is an answer.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.domain.events.external_agent import DriverOutputRead
from holdfast.domain.events.session import ModelResponded, TurnResumed, WaitAnswered, WaitOpened
from tests.agents.conftest import Make
from tests.agents.life import QUICK, said
from tests.eventually import eventually
from tests.rig import StoppedClock
from tests.runtime.mortal import Fault, How, mortal_store

DRIVERS = ["", "claude"]
"""The protocol, and a command."""
HOUR_MS = 3_600_000


def keepers_of(pid: int) -> tuple[int, int]:
    """Return the processes that watch a command: its parent, and the parent of that."""
    return _parent(pid), _parent(_parent(pid))


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def test_a_program_that_is_not_installed(make: Make) -> None:
    life = make(settings='[profiles.scripted]\nagent = "codex"\nargv = ["/nowhere/codex-acp"]\n')
    await life.start("!say one")
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.problem is not None
    assert state.last_turn.problem.code == "agent_missing" and "npm install" in state.last_turn.problem.hint


async def test_another_version_of_the_protocol(make: Make) -> None:
    life = make("newer")
    await life.start("!say one")
    state = await life.rest()
    assert state.last_turn is not None and state.last_turn.outcome == "failed"
    assert "speaks version 2 of the protocol, and Holdfast speaks 1" in state.last_turn.reason
    assert not await life.store.running_tasks()


async def test_answers_to_what_nobody_asked(make: Make) -> None:
    life = make("steers")
    await life.start("!answer 7", '!answer "steer-x"', "!answer 1000002", "!answer null", "!say end")
    await life.rest()
    assert said(await life.events()) == ["end"]


@pytest.mark.parametrize("command", DRIVERS)
async def test_half_a_line_at_the_kill(make: Make, command: str, tmp_path: Path) -> None:
    life = make(command=command)
    half = '!half {"jsonrpc":"2.0","method":"session/upd'
    await life.start("!say one", f"!once {tmp_path / 'half'} {half[1:]}", f"!once {tmp_path / 'died'} die 137")
    await life.rest()
    await life.say("!say two")
    await life.rest(2)
    events = await life.events()
    assert said(events)[0] == "cut one" and said(events)[-1] == "two"
    assert len([event for event in events if isinstance(event, TurnResumed)]) == 1


async def test_an_agent_that_ends_itself_with_0_in_the_middle_is_resumed(make: Make, tmp_path: Path) -> None:
    life = make()
    await life.start("!say one", f"!once {tmp_path / 'ended'} die 0", "!say two")
    await life.rest()
    events = await life.events()
    (resumed,) = [event for event in events if isinstance(event, TurnResumed)]
    assert "exit code 0" in resumed.reason and said(events)[0] == "cut one"


@pytest.mark.parametrize("command", DRIVERS)
@pytest.mark.parametrize("killed", ["keeper", "standby", "both"])
async def test_keepers_are_killed_while_it_works(make: Make, command: str, killed: str, tmp_path: Path) -> None:
    life = make(command=command)
    go = tmp_path / "go"
    await life.start("!say one", "!call a read x", f"!wait {go}", "!say two")
    await life.until(ModelResponded)
    (row,) = await life.store.running_tasks()
    assert row.pid is not None
    keeper, standby = keepers_of(row.pid)
    for pid in {"keeper": [keeper], "standby": [standby], "both": [standby, keeper]}[killed]:
        os.kill(pid, signal.SIGKILL)
    go.touch()
    await life.rest()
    events = await life.events()
    resumed = [event for event in events if isinstance(event, TurnResumed)]
    words = " ".join(said(events)).split()
    assert said(events)[0] == "one" and words.count("one") == 1
    if killed != "both":
        assert not resumed
    if resumed:  # its pipes broke before it was done
        assert words.count("two") <= 1
    else:
        assert said(events)[-1] == "two"


async def test_a_permission_while_nobody_is_there_for_an_hour(make: Make) -> None:
    clock = StoppedClock(time.time_ns() // 1_000_000)
    life = make(clock=clock)
    await life.start("!ask a rm x", "!say end")
    await life.until(WaitOpened)
    clock.move(HOUR_MS)
    await life.close()
    clock.move(HOUR_MS)
    life = make(clock=clock)
    await life.start()
    state = await life.rig.until_session("0123456789abcdef", lambda state: state.turn is not None)
    assert state.activity == "waiting" and not state.answered
    await life.answer("deny")
    await life.rest()
    (answer,) = [event for event in await life.events() if isinstance(event, WaitAnswered)]
    assert answer.answer == "no" and str(answer.by) != "clock"


@pytest.mark.parametrize("how", ["full", "doubt"])
@pytest.mark.parametrize("command", DRIVERS)
async def test_the_disk_is_full_while_it_works(make: Make, command: str, how: How, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    store = mortal_store(tmp_path / "home" / "holdfast.db", Fault(6, how))
    quick = replace(QUICK, runtime=replace(QUICK.runtime, append_retry=0.01))
    life = make(command=command, store=store, timings=quick)
    await life.start("!say one", "!call a read x", "!say two", "!call b read y", "!say three")

    async def struck() -> bool:
        return store.struck

    await eventually(struck)
    store.space()
    await life.rest()
    calls = [one for one in said(await life.events()) if not one.startswith(("call", "done"))]
    assert calls == ["one", "two", "three"]
    reads = [event.offset for event in await life.events() if isinstance(event, DriverOutputRead)]
    assert reads == sorted(reads)
