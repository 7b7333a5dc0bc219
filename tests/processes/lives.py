"""The lives of supervisors that are to be killed; see `zygote.py`. What they tell is the test's log."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

from holdfast.domain.errors import Unavailable
from holdfast.processes.command import Command, CommandOutcome, Ended, Lost, NeverStarted, Running
from holdfast.processes.supervisor import Supervisor
from tests.processes.house import ENV, fresh
from tests.zygote import HUNG, tell

SCRIPT = "echo ran >> {id}.ran; sleep {pause}; head -c {size} /dev/urandom | tee {id}.copy; exit {code}"


async def work(root: str, cwd: str, open_: list[str], seed: int, more: bool) -> None:
    """Find everything that is open, and start more and more. An intent is told before a start."""
    supervisor, dice = Supervisor(Path(root)), random.Random(seed)

    async def see(id: str) -> None:
        tell("found", id, type(await supervisor.attach(id)).__name__)
        say_outcome(await supervisor.wait(id))

    async def begin() -> None:
        while more:
            id, code = fresh(), dice.randrange(200)
            text = SCRIPT.format(id=id, code=code, size=dice.choice((0, 100, 100_000)), pause=dice.choice((0, 0.02)))
            tell("intent", id, code)
            try:
                await supervisor.start(Command(id=id, run=text, cwd=Path(cwd), env=ENV))
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
    running = await supervisor.start(Command(id=id, run=("cat",), cwd=Path(cwd), env=ENV, stdin="pipe"))
    assert isinstance(running, Running)
    await supervisor.write(id, b"first life\n")
    tell("fed")
    await asyncio.sleep(HUNG)


LIVES: dict[str, Any] = {"work": work, "feed": feed}
