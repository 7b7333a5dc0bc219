"""A process that has imported everything and forks a child for each life: a start costs 5 ms, not 200.

It runs as `python -m tests.forked_lives LIVES`, with the module of their lives, takes requests as JSON lines on
stdin, and shares its stdout with its children. A child that is killed cannot take back what it wrote there:
this pipe is the memory of the test, outside of the process under test.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Literal, Self

from tests.eventually import PATIENCE

ROOT = Path(__file__).parents[1]
HUNG = PATIENCE
TOO_LATE = ["too late"]
Since = Literal["birth", "first word"]


def tell(*words: object) -> None:
    """One line to the test, in one write, so that lines never mix."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


# --- the test's side ------------------------------------------------------------------------------


@dataclass(slots=True)
class Life:
    """What was heard of one child."""

    lines: list[list[str]] = field(default_factory=list)
    status: int = 0

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL

    def said(self, word: str) -> list[list[str]]:
        """The rest of each line that began with this word."""
        return [line[1:] for line in self.lines if line[0] == word]


class ForkedLives:
    """Runs lives, one at a time."""

    def __init__(self, lives: str, *, preload: Path | None = None) -> None:
        environment = os.environ | ({"LD_PRELOAD": str(preload)} if preload is not None else {})
        command = [sys.executable, "-m", "tests.forked_lives", lives]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
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

    def live(
        self, life: str, *, kill_after: float = HUNG, since: Since = "birth", kill_on: str = "", **arguments: object
    ) -> Life:
        """Run a life to its end; or kill it so many seconds after its birth or its first word, or on a word."""
        self._requests.write(json.dumps([life, arguments]).encode() + b"\n")
        self._requests.flush()
        heard, hung = Life(), False
        pid = int(self._line()[1])
        deadline = time.monotonic() + (kill_after if since == "birth" else HUNG)
        while (line := self._line(deadline))[0] != "exit":
            if kill_after == HUNG or (not heard.lines and since == "first word"):
                deadline = time.monotonic() + kill_after  # whoever speaks does not hang, however long it takes
            if line != TOO_LATE:
                heard.lines.append(line)
            if line == TOO_LATE or line[0] == kill_on:
                os.kill(pid, signal.SIGKILL)
                deadline, hung = inf, line == TOO_LATE and kill_after == HUNG
        heard.status = int(line[1])
        assert not hung, f"{life} {arguments} hung after {heard.lines}"
        return heard

    def _line(self, deadline: float = inf) -> list[str]:
        """The next line, as words."""
        while b"\n" not in self._unread:
            timeout = None if deadline == inf else deadline - time.monotonic()
            if timeout is not None and timeout <= 0:
                return TOO_LATE
            if self._selector.select(timeout):
                data = os.read(self._answers.fileno(), 65_536)
                assert data, "the process that forks them died"
                self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode().split(" ")


# --- the process's side ---------------------------------------------------------------------------


def _serve() -> None:
    lives = import_module(sys.argv[1]).LIVES
    gc.collect()
    gc.freeze()  # a child's collector leaves these pages shared
    for request in sys.stdin:
        life, arguments = json.loads(request)
        pid = os.fork()
        if pid == 0:
            tell("born", os.getpid())
            try:
                asyncio.run(lives[life](**arguments))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        tell("exit", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _serve()
