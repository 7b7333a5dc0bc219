"""Real commands and what a sensible person would say that they are doing.

The expectations under BLIND were written from the four words alone, before anybody looked at how they are told
apart, and stay as they were written. Where the rule says something else it has a `limit`, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.processes.rig import PYTHON


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
    """Who comes to the port or the door that it prints."""
    limit: str = ""
    """What is said instead."""
    because: str = ""

    @property
    def said(self) -> str:
        return self.limit or self.expected


def python(text: str) -> tuple[str, ...]:
    return (PYTHON, "-u", "-c", text)


HTTP = (PYTHON, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--protocol", "HTTP/1.1")
BURN = f"{PYTHON} -u -c 'print(\"ready\")\nwhile True: pass'"
CONNECT = (
    "import os, socket, time; s = socket.create_connection(('127.0.0.1', int(os.environ['{}']))); print('ready')\n"
)
LISTEN = "import socket, os, time; s = socket.create_server(('127.0.0.1', 0)); print('port', s.getsockname()[1])\n"

BLIND = [
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
        limit="serving, in use",
        because="whoever listens is a server and postpones no reset; at least it is not called unused",
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
        limit="idle",
        because="UDP knows no listening: a client that asked a name server looks the same",
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

SEEN = [
    Case("a talker", "while :; do echo tick; sleep 0.05; done", "working", "it prints", "tick"),
    Case(
        "a daemon",
        "setsid sh -c 'echo ready; while :; do :; done' & sleep 1000",
        "working",
        "what left the session of its command still belongs to it",
        "ready",
    ),
    Case(
        "a job with workers",
        python(
            "import socket; s = socket.socket(socket.AF_UNIX); s.bind('workers'); s.listen(); print('ready')\n"
            "while True: pass"
        ),
        "working",
        "a unix socket for its own workers makes no server of a job",
        "ready",
    ),
    Case(
        "a unix socket with a visitor",
        python(
            "import os, socket; s = socket.socket(socket.AF_UNIX); s.bind('visited'); s.listen()\n"
            "print('door', os.path.abspath('visited')); c = s.accept(); c[0].recv(1)"
        ),
        "serving, in use",
        "somebody is connected",
        "door",
        visitor="silent",
    ),
    Case(
        "a server that looks at its clock",
        python(LISTEN + "s.settimeout(0.2)\nwhile True:\n try: s.accept()\n except TimeoutError: os.stat('.')"),
        "serving, not in use",
        "waking up is not being used",
        "port",
    ),
    Case(
        "a reader of small files",
        "echo ready; head -c 8192 /dev/zero > small; while :; do md5sum small > /dev/null; sleep 1; done",
        "idle",
        "a configuration that is read again each second is no work",
        "ready",
    ),
    Case(
        "a prompt in a dialogue of programs",
        f"echo ready; {PYTHON} -c 'import subprocess; subprocess.Popen([\"cat\"], stdin=subprocess.PIPE).wait()'",
        "idle",
        "its partner does not speak, and nobody else can answer",
        "ready",
        stdin="pipe",
    ),
    Case(
        "a prompt that polls",
        python("import select; p = select.poll(); p.register(0); print('ready? '); p.poll()"),
        "waiting, on input",
        "how it waits makes no difference to whom it asks",
        "ready",
        stdin="pipe",
        limit="idle",
        because="which descriptors are polled stands in its memory, not in its call",
    ),
]

CASES = BLIND + SEEN
