"""What a sensible person would say that a live command is doing, for real commands side by side.

The expectations were written from the four words alone, before anybody looked at how they are told apart.
All cases run at once under one supervisor; a word has to hold at every look, since one that flickers is wrong.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal

import pytest
import pytest_asyncio

from holdfast.processes.activity import Activity
from tests.eventually import eventually
from tests.processes.house import ENV, PYTHON, House

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LOOKS = 4
APART = 0.5


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    run: str | tuple[str, ...]
    expected: str
    """The word, and behind a comma the detail."""
    why: str
    ready: str = ""
    """What it has printed when it has got where we want it."""
    stdin: Literal["nothing", "pipe"] = "nothing"
    visitor: Literal["nobody", "steady", "silent"] = "nobody"
    """Who comes to the port that it prints."""


def python(text: str) -> tuple[str, ...]:
    return (PYTHON, "-u", "-c", text)


HTTP = (PYTHON, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--protocol", "HTTP/1.1")
BURN = f"{PYTHON} -u -c 'print(\"ready\")\nwhile True: pass'"
CONNECT = (
    "import os, socket, time; s = socket.create_connection(('127.0.0.1', int(os.environ['{}']))); print('ready')\n"
)
LISTEN = "import socket, os, time; s = socket.create_server(('127.0.0.1', 0)); print('port', s.getsockname()[1])\n"

CASES = [
    Case("a burner", BURN, "working", "it takes all the processor it gets", "ready"),
    Case(
        "a build",
        f"echo ready; while :; do {PYTHON} -S -c 'sum(range(10**6))'; done",
        "working",
        "each compiler is gone before the next look, and yet the work goes on",
        "ready",
    ),
    Case("a parent of a burner", f"{BURN} & wait", "working", "it sleeps, but what it started works", "ready"),
    Case(
        "bursts",
        python(
            "import time; print('ready')\nwhile True:\n"
            " end = time.process_time() + 0.3\n while time.process_time() < end: pass\n time.sleep(1.7)"
        ),
        "working",
        "a pause of two seconds between two pieces of work is no rest",
        "ready",
    ),
    Case(
        "a trickle",
        "echo ready; while :; do printf .; sleep 0.2; done",
        "working",
        "it says something new all the time, however little",
        "ready",
    ),
    Case(
        "a slow download",
        python(CONNECT.format("DRIP") + "with open('download', 'wb') as f:\n while d := s.recv(4096): f.write(d)"),
        "working",
        "the file grows; it gets somewhere",
        "ready",
    ),
    Case(
        "a slow writer",
        "echo ready; while :; do head -c 65536 /dev/zero >> written; sleep 0.2; done",
        "working",
        "no processor and no output to speak of, but a file that grows",
        "ready",
    ),
    Case(
        "a trainer with a metrics port",
        python(LISTEN + "s.setblocking(False)\nwhile True: pass"),
        "working",
        "the open port is beside the point while it computes and nobody came",
        "port",
    ),
    Case("a server that nobody visits", HTTP, "serving, not in use", "it listens, and nobody is there", "port"),
    Case(
        "a server that a shell started",
        " ".join(HTTP) + " & wait",
        "serving, not in use",
        "whose child it is makes no difference",
        "port",
    ),
    Case("a busy server", HTTP, "serving, in use", "requests come all the time", "port", visitor="steady"),
    Case(
        "a server with a silent visitor",
        HTTP,
        "serving, in use",
        "somebody is connected, and would notice if it went away",
        "port",
        visitor="silent",
    ),
    Case(
        "a server with a database",
        python(CONNECT.format("SILENT") + LISTEN.replace(" s = ", " t = ").replace("s.get", "t.get") + "t.accept()"),
        "serving, not in use",
        "the connection that it made itself is no visitor",
        "port",
    ),
    Case(
        "a server on a unix socket",
        python(
            "import socket; s = socket.socket(socket.AF_UNIX); s.bind('door'); s.listen(); print('ready'); s.accept()"
        ),
        "serving, not in use",
        "a socket in a directory is a door too",
        "ready",
    ),
    Case(
        "a server on UDP",
        python(
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0))\n"
            "print('ready'); s.recvfrom(100)"
        ),
        "serving, not in use",
        "it is bound and waits for whoever comes",
        "ready",
    ),
    Case(
        "a prompt of the shell",
        "printf 'ready? '; read answer",
        "waiting, on input",
        "it asks and cannot go on without an answer",
        "ready",
        stdin="pipe",
    ),
    Case(
        "a prompt behind a parent",
        f"{PYTHON} -u -c 'input(\"ready? \")'; echo done",
        "waiting, on input",
        "the one that asks is a child",
        "ready",
        stdin="pipe",
    ),
    Case("a filter", "echo ready; cat | grep x", "waiting, on input", "nothing came in yet", "ready", stdin="pipe"),
    Case(
        "a REPL on a terminal",
        ("script", "-q", "-c", f"{PYTHON} -i", "/dev/null"),
        "waiting, on input",
        "a terminal between us and the prompt is still a prompt",
        ">>>",
        stdin="pipe",
    ),
    Case(
        "a client that waits for an answer",
        python(CONNECT.format("SILENT") + "s.recv(1)"),
        "waiting, on net",
        "only the other side can make it go on",
        "ready",
    ),
    Case(
        "curl at a silent server",
        "echo ready; curl -s -N http://127.0.0.1:$SILENT/",
        "waiting, on net",
        "it asked, and polls with a timer for the answer",
        "ready",
    ),
    Case("a sleeper", ("sleep", "1000"), "idle", "nothing happens and nobody is asked for anything"),
    Case("a sleeper with an input", ("sleep", "1000"), "idle", "it could be given input but reads none", stdin="pipe"),
    Case("tail -f of a quiet file", "touch quiet; echo ready; tail -f quiet", "idle", "nothing to tell", "ready"),
    Case("a quiet pipe", "echo ready; sleep 1000 | cat", "idle", "that input is not ours to give", "ready"),
    Case(
        "a watcher",
        "echo ready; while :; do stat . > /dev/null; sleep 1; done",
        "idle",
        "a glance each second that finds nothing is no work",
        "ready",
    ),
    Case(
        "a stopped burner",
        python("import os, signal; print('ready'); os.kill(os.getpid(), signal.SIGSTOP)\nwhile True: pass"),
        "idle",
        "it would work, but somebody stopped it",
        "ready",
    ),
    Case(
        "a lock that is taken",
        "exec 9>lock; flock 9; echo ready; exec 8>lock; flock 8",
        "idle",
        "it waits, but neither for a person nor for the net",
        "ready",
    ),
]


async def _steady(port: int) -> None:
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.05)


async def _silent(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await asyncio.Event().wait()
    finally:
        writer.close()


async def _accept_and_say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(4096):
        pass
    writer.close()


async def _drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while True:
            writer.write(b"x" * 4096)
            await writer.drain()
            await asyncio.sleep(0.1)


@asynccontextmanager
async def _server(answer: Answer) -> AsyncIterator[int]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def said(activity: object) -> str:
    """As the table says it."""
    if not isinstance(activity, Activity):
        return "not yet"
    return f"{activity.word}, {activity.detail}" if activity.detail else activity.word


async def look(house: House, cases: list[Case], *, looks: int, apart: float) -> dict[str, list[Activity]]:
    """Start everything, and look at all of it together."""
    async with AsyncExitStack() as stack:
        silent = await stack.enter_async_context(_server(_accept_and_say_nothing))
        drip = await stack.enter_async_context(_server(_drip))
        env = {**ENV, "SILENT": str(silent), "DRIP": str(drip)}
        started = {case.name: (await house.start(case.run, env=env, stdin=case.stdin)).id for case in cases}
        visitors = []
        for case in cases:
            id = started[case.name]

            async def ready(id: str = id, word: str = case.ready) -> bool:
                return word.encode() in house.everything(id)

            await eventually(ready, within=60)
            if case.visitor != "nobody":
                found = re.search(rb"port (\d+)", house.everything(id))
                assert found is not None
                visit = _steady if case.visitor == "steady" else _silent
                visitors.append(asyncio.create_task(visit(int(found[1]))))
        await asyncio.sleep(APART)
        await house.supervisor.activities()
        seen: dict[str, list[Activity]] = {case.name: [] for case in cases}
        for _ in range(looks):
            await asyncio.sleep(apart)
            activities = await house.supervisor.activities()
            for name, id in started.items():
                activity = activities[id]
                assert isinstance(activity, Activity)
                seen[name].append(activity)
        for visitor in visitors:
            visitor.cancel()
        await asyncio.gather(*visitors, return_exceptions=True)
        await house.close()
    return seen


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Activity]]:
    return await look(House(tmp_path_factory.mktemp("cases")), CASES, looks=LOOKS, apart=APART)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_case(case: Case, seen: dict[str, list[Activity]]) -> None:
    assert [said(activity) for activity in seen[case.name]] == [case.expected] * LOOKS, case.why
