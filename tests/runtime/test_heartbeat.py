"""How long no worker worked: by the last sign of life, whatever the wall clock does and however long a tool ran."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.domain.events.session import ModelRequested, ToolCallFinished, ToolCallStarted, TurnResumed, WaitOpened
from holdfast.runtime.work_time import HeartbeatFile
from tests.domain.history import check_ended
from tests.rig import StoppedClock
from tests.runtime.mortal import mortal_store
from tests.runtime.rig import Rig, call, only, seen

HOUR = 3_600_000
DAY = 24 * HOUR


class Machine:
    """A machine whose clocks stand still until they are moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.boot, self.up, self.wall = "first", DAY, StoppedClock(100 * DAY)
        monkeypatch.setattr("holdfast.runtime.work_time.boot_id", lambda: self.boot)
        monkeypatch.setattr("holdfast.runtime.work_time.uptime_ms", lambda: self.up)

    def sleep(self, milliseconds: int) -> None:
        self.up += milliseconds
        self.wall.move(milliseconds)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.mark.parametrize("jump", [0, DAY, -DAY], ids=["no jump", "a day forward", "a day back"])
def test_within_a_boot_the_wall_clock_does_not_matter(tmp_path: Path, machine: Machine, jump: int) -> None:
    file = tmp_path / "heartbeat"
    assert HeartbeatFile(file, machine.wall).away_ms() is None
    HeartbeatFile(file, machine.wall).beat()
    machine.sleep(3_000)
    machine.wall.move(jump)
    found = HeartbeatFile(file, machine.wall)
    assert found.away_ms() == 3_000
    machine.sleep(500)
    assert found.away_ms() == 3_500


def test_across_boots_the_wall_clock_must_do_and_is_never_negative(tmp_path: Path, machine: Machine) -> None:
    file = tmp_path / "heartbeat"
    HeartbeatFile(file, machine.wall).beat()
    machine.sleep(3_000)
    machine.boot, machine.up = "second", 10
    assert HeartbeatFile(file, machine.wall).away_ms() == 3_000
    machine.wall.move(-DAY)
    assert HeartbeatFile(file, machine.wall).away_ms() == 0


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"boot": "first"}), json.dumps({"boot": "x", "at": "?"})])
def test_a_damaged_sign_is_none(tmp_path: Path, machine: Machine, text: str) -> None:
    (tmp_path / "heartbeat").write_text(text)
    assert HeartbeatFile(tmp_path / "heartbeat", machine.wall).away_ms() is None


async def crash(home: Path, machine: Machine, *, after: int) -> None:
    """A gateway that dies while a tool has been at work for so long."""
    store = mortal_store(home / "holdfast.db")
    heartbeat = HeartbeatFile(home / "heartbeat", machine.wall)
    rig = await Rig(home, store=store, clock=machine.wall, heartbeat=heartbeat).start()
    await rig.create(f"call {call('stall', letter='a')}")
    await rig.until(seen(ToolCallStarted))
    machine.sleep(after)
    heartbeat.beat()
    store.died.set()
    await rig.close()


async def test_working_is_not_being_away(tmp_path: Path, machine: Machine) -> None:
    """A tool worked for ten hours, longer than old work may be; three seconds after a crash the turn goes on."""
    await crash(tmp_path, machine, after=10 * HOUR)
    machine.sleep(3_000)
    rig = await Rig(tmp_path, clock=machine.wall, heartbeat=HeartbeatFile(tmp_path / "heartbeat", machine.wall)).start()
    records = await rig.rest()
    [resumed] = only(records, TurnResumed)
    assert isinstance(resumed, TurnResumed)
    assert resumed.away_ms == 3_000
    assert only(records, WaitOpened) == []
    check_ended(records)
    await rig.close()


async def test_ten_hours_without_a_gateway_wait_for_a_person(tmp_path: Path, machine: Machine) -> None:
    await crash(tmp_path, machine, after=1_000)
    machine.sleep(10 * HOUR)
    rig = await Rig(tmp_path, clock=machine.wall, heartbeat=HeartbeatFile(tmp_path / "heartbeat", machine.wall)).start()
    [wait] = only(await rig.until(seen(WaitOpened)), WaitOpened)
    assert isinstance(wait, WaitOpened)
    assert "10 h 0 min ago" in wait.reason
    await rig.close()


async def test_no_duration_is_negative_when_the_clock_is_set_back(tmp_path: Path, machine: Machine) -> None:
    rig = await Rig(tmp_path, clock=machine.wall).start()
    await rig.create("hold one")
    await rig.until(seen(ModelRequested))
    machine.wall.move(-DAY)
    rig.model.go.set()
    records = await rig.rest()
    assert check_ended(records).turns[0].text == "one"
    assert [getattr(record.event, "duration_ms", 0) for record in records] == [0] * len(records)
    assert only(records, ToolCallFinished) == []
    await rig.close()
