"""The keeper killed at every system call of its life: whatever is said about the command afterwards is true.

Before it becomes the command, its child makes dozens of calls of the same kind: in the gate every fourth of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from holdfast.domain.errors import HoldfastError, Rejected
from holdfast.processes.command import CommandOutcome, CommandSpec, Ended, Lost, NeverStarted
from holdfast.processes.launch import KeeperLauncher
from holdfast.processes.supervisor import Supervisor
from tests.processes.mortal import Company, Point, Role, mortal_keeper
from tests.processes.rig import DirectLauncher, ProcessRig, code, with_server

RUNS = "echo ran >> ran; exit 7"
AT_ONCE = 4
MOST = 200
EACH = pytest.param(1, marks=pytest.mark.proof)


async def killed_at(
    point: Point, run: str | tuple[str, ...], place: Path, launcher: KeeperLauncher
) -> tuple[bool, CommandOutcome]:
    """Start it with a keeper that dies there; whether it did, and what is said afterwards."""
    place.mkdir()
    point.set(place)
    rig = ProcessRig(place)
    first = Supervisor(rig.root, launcher=launcher)
    command = rig.command(run)
    try:
        await first.start(command)
        began = True
    except HoldfastError:
        began = False
    await first.close()
    outcome = await rig.supervisor.wait(command.id)
    ran = times_run(place)
    check(outcome, ran, point, run, began=began)
    supervisor = await rig.restart()
    assert await supervisor.wait(command.id) == outcome, "the same when it is asked again"
    hit = (place / "hit").exists()
    if isinstance(outcome, NeverStarted) and outcome.cancelled:
        await start_anew(rig, command, like=outcome)
        ran += run == RUNS
    await rig.close()
    assert ran == times_run(place), "it ran later"
    return hit, outcome


async def start_anew(rig: ProcessRig, command: CommandSpec, *, like: NeverStarted) -> None:
    """Start it in peace, now that it is known that nothing ran."""
    if command.run != RUNS:
        with pytest.raises(Rejected, match="could not start"):
            await rig.supervisor.start(command)
        return
    await rig.supervisor.start(command)
    assert code(await rig.supervisor.wait(command.id)) == 7, like


def times_run(place: Path) -> int:
    return (place / "ran").read_text().count("ran") if (place / "ran").exists() else 0


def check(outcome: CommandOutcome, ran: int, point: Point, run: str | tuple[str, ...], *, began: bool) -> None:
    match outcome:
        case Ended(status=7):
            assert ran == 1
        case Ended(status=status):
            assert (status, point.role, ran) == (-9, "command", 0), f"an invented exit code {status} at {point}"
        case NeverStarted():
            assert ran == 0
            assert not began
            assert outcome.cancelled or run != RUNS, f"nothing prevents it from running, but {outcome} at {point}"
        case Lost():
            assert point.company == "with its parent" and ran <= 1, f"{outcome} at {point}"


async def every_point(
    role: Role, company: Company, run: str | tuple[str, ...], tmp_path: Path, launcher: KeeperLauncher, *, every: int
) -> Counter[str]:
    """Call after call, until the process has ended before it could be killed."""
    told = Counter[str]()
    at, step = 1, every if role == "command" else 1
    while at < MOST:
        points = [Point(role, number, company) for number in range(at, at + AT_ONCE * step, step)]
        found = await asyncio.gather(*(killed_at(point, run, tmp_path / str(point.at), launcher) for point in points))
        told.update(type(outcome).__name__ for hit, outcome in found if hit)
        if not all(hit for hit, _ in found):
            break
        at += AT_ONCE * step
    return told


CASES = [
    (role, company)
    for role in get_args(Role)
    for company in get_args(Company)
    if (role, company) != ("standby", "with its parent")
]


@pytest.mark.parametrize("every", [4, EACH])
@pytest.mark.parametrize(("role", "company"), CASES)
async def test_promise_7_killed_at_every_call(role: Role, company: Company, every: int, tmp_path: Path) -> None:
    script = mortal_keeper(tmp_path)
    launcher = DirectLauncher(script) if role == "standby" else await with_server(KeeperLauncher(script))
    told = await every_point(role, company, RUNS, tmp_path, launcher, every=every)
    launcher.close()
    print(f"\n{role} killed {company} at each of {told.total()} calls: {dict(told)}")
    assert told.total() >= 8


@pytest.mark.parametrize("every", [4, EACH])
async def test_promise_7_killed_while_it_fails_to_begin(every: int, tmp_path: Path) -> None:
    launcher = await with_server(KeeperLauncher(mortal_keeper(tmp_path)))
    for role in get_args(Role):
        (tmp_path / role).mkdir()
        told = await every_point(role, "alone", ("no-such-command",), tmp_path / role, launcher, every=every)
        print(f"\n{role} killed at each of {told.total()} calls: {dict(told)}")
        assert told.total() >= 3
        assert set(told) <= ({"NeverStarted", "Ended"} if role == "command" else {"NeverStarted"})
    launcher.close()
