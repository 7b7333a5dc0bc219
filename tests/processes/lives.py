"""Supervisors that a test kills in the middle. Their output is the log of the test."""

from __future__ import annotations

import asyncio
import fcntl
import random
from pathlib import Path
from typing import Any

from holdfast.domain.errors import Unavailable
from holdfast.processes.command import CommandOutcome, CommandSpec, Ended, Lost, NeverStarted, Running
from holdfast.processes.identity import process
from holdfast.processes.launch import KeeperLauncher
from holdfast.processes.spool import Spool
from holdfast.processes.supervisor import Supervisor
from tests.forked_lives import HUNG, tell
from tests.processes.rig import ENV, fresh, with_server

SCRIPT = "echo ran >> {id}.ran; sleep {pause}; head -c {size} /dev/urandom | tee {id}.copy; exit {code}"


async def work(root: str, cwd: str, open_: list[str], seed: int, more: bool, warm: bool = False) -> None:
    """Find everything that is open, and start more and more. An intent is told before a start.

    A warm life begins when its keeper server is ready; in a cold one, keepers start without it at first.
    """
    launcher, dice = KeeperLauncher(), random.Random(seed)
    if warm:
        await with_server(launcher)
        tell("ready", "to", "start")
    supervisor = Supervisor(Path(root), launcher=launcher)

    async def see(id: str) -> None:
        tell("found", id, type(await supervisor.attach(id)).__name__)
        say_outcome(await supervisor.wait(id))

    async def begin() -> None:
        while more:
            id, code = fresh(), dice.randrange(200)
            text = SCRIPT.format(id=id, code=code, size=dice.choice((0, 100, 100_000)), pause=dice.choice((0, 0.02)))
            tell("intent", id, code)
            try:
                await supervisor.start(CommandSpec(id=id, run=text, cwd=Path(cwd), env=ENV))
            except Unavailable:
                await asyncio.sleep(0.01)
            else:
                tell("started", id)
                waiting.append(asyncio.create_task(see_end(id)))

    async def see_end(id: str) -> None:
        say_outcome(await supervisor.wait(id))

    waiting: list[asyncio.Task[None]] = []
    await asyncio.gather(*(see(id) for id in open_), begin(), begin())
    await asyncio.gather(*waiting)
    await supervisor.close()
    launcher.close()


def say_outcome(outcome: CommandOutcome) -> None:
    match outcome:
        case Ended(id=id, status=status):
            tell("outcome", id, "ended", status)
        case NeverStarted(id=id):
            tell("outcome", id, "never", 0)
        case Lost(id=id, evidence=evidence):
            tell("outcome", id, "lost", evidence.replace(" ", "_"))


async def feed(root: str, cwd: str, id: str) -> None:
    """Start something that reads, feed it, and say so."""
    supervisor = Supervisor(Path(root))
    running = await supervisor.start(CommandSpec(id=id, run=("cat",), cwd=Path(cwd), env=ENV, stdin="pipe"))
    assert isinstance(running, Running)
    await supervisor.write(id, b"first life\n")
    tell("fed")
    await asyncio.sleep(HUNG)


async def lock(root: str, cwd: str, id: str) -> None:
    """Hold a lock as a gateway does, start a command by the keeper server, and say so."""
    with (Path(cwd) / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        supervisor = Supervisor(Path(root), launcher=await with_server(KeeperLauncher()))
        await supervisor.start(CommandSpec(id=id, run=("sleep", "100"), cwd=Path(cwd), env=ENV))
        claim = Spool(Path(root), id).claim()
        standby = process(claim.standby.pid) if claim is not None else None
        tell("server", standby.parent if standby is not None else 0)
        tell("locked")
        await asyncio.sleep(HUNG)


LIVES: dict[str, Any] = {"work": work, "feed": feed, "lock": lock}
