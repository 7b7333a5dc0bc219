"""A process that has imported everything and forks a child for each life of a supervisor, to be killed.

It runs as `python -m tests.processes.driver`, takes requests as JSON lines, and shares its stdout with its
children. What a child said there before it was killed is the memory of the test, as the log is of the gateway.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from holdfast.domain.errors import Unavailable
from holdfast.processes.command import Command, Ended, Lost, NeverStarted, Over, Running
from holdfast.processes.supervisor import Supervisor
from tests.processes.house import ENV, fresh

ROOT = Path(__file__).parents[2]
HUNG = 60.0


def tell(*words: object) -> None:
    """One line to the test, in one write, so that lines never mix."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


# --- the test's side ------------------------------------------------------------------------------


@dataclass(slots=True)
class Life:
    lines: list[list[str]] = field(default_factory=list)
    status: int = 0

    def said(self, word: str) -> list[list[str]]:
        return [line[1:] for line in self.lines if line[0] == word]


class Driver:
    """Runs lives, one at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.processes.driver"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        os.set_blocking(self._answers.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._requests.close()
        self._answers.close()
        self._selector.close()
        self._process.wait()

    def live(self, life: str, *, kill_after: float = HUNG, kill_on: str = "", **arguments: object) -> Life:
        """Run a life to its end, or kill it after a time, or when it says a word."""
        self._requests.write(json.dumps([life, arguments]).encode() + b"\n")
        self._requests.flush()
        heard, deadline = Life(), time.monotonic() + HUNG
        line = self._line(deadline)
        assert line is not None
        pid = int(line[1])
        deadline = time.monotonic() + kill_after
        while (line := self._line(deadline)) is None or line[0] != "exit":
            if line is not None:
                heard.lines.append(line)
            if line is None or line[0] == kill_on:
                assert kill_after != HUNG or line is not None, f"{life} hung after {heard.lines[-20:]}"
                os.kill(pid, signal.SIGKILL)
                deadline = time.monotonic() + HUNG
        heard.status = int(line[1])
        return heard

    def _line(self, deadline: float) -> list[str] | None:
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            if self._selector.select(left):
                data = os.read(self._answers.fileno(), 65_536)
                assert data, "the driver died"
                self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode().split(" ")


# --- the lives ------------------------------------------------------------------------------------

SCRIPT = "echo ran >> {id}.ran; sleep {pause}; head -c {size} /dev/urandom | tee {id}.copy; exit {code}"


async def work(root: str, cwd: str, open_: list[str], seed: int, more: bool) -> None:
    """Find everything that is open, and start more and more. An intent is told before a start."""
    supervisor, dice = Supervisor(Path(root)), random.Random(seed)

    async def see(id: str) -> None:
        tell("found", id, type(await supervisor.attach(id)).__name__)
        say_over(await supervisor.wait(id))

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
        say_over(await supervisor.wait(id))

    waiting: list[asyncio.Task[None]] = []
    await asyncio.gather(*(see(id) for id in open_), begin(), begin())
    await asyncio.gather(*waiting)
    await supervisor.close()


def say_over(over: Over) -> None:
    match over:
        case Ended(id=id, status=status):
            tell("over", id, "ended", status)
        case NeverStarted(id=id):
            tell("over", id, "never", 0)
        case Lost(id=id, evidence=evidence):
            tell("over", id, "lost", evidence.replace(" ", "_"))


async def feed(root: str, cwd: str, id: str) -> None:
    """Start something that reads, feed it, and say so."""
    supervisor = Supervisor(Path(root))
    running = await supervisor.start(Command(id=id, run=("cat",), cwd=Path(cwd), env=ENV, stdin="pipe"))
    assert isinstance(running, Running)
    await supervisor.write(id, b"first life\n")
    tell("fed")
    await asyncio.sleep(HUNG)


LIVES: dict[str, Any] = {"work": work, "feed": feed}


def _serve() -> None:
    for request in sys.stdin:
        life, arguments = json.loads(request)
        pid = os.fork()
        if pid == 0:
            tell("born", os.getpid())
            try:
                asyncio.run(LIVES[life](**arguments))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        tell("exit", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _serve()
