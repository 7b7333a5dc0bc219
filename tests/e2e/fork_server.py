"""Programs are slow to start because of what they import. A fork server has imported it all and forks them.

There is one for the command line and two for gateways: the model library takes seconds more, so only gateways that
will need it come from the one that has it. All processes that run tests share them, since each takes seconds to start.
Run as a program a fork server reads one request a line from each of them and answers it: `spawn` forks a child that
runs a script, `reap` tells how a dead child ended. A child is a process like any other: it may be killed and leaves
nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import Any

import holdfast.cli

ROOT = Path(__file__).parents[2]
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
MODELS = (
    "pydantic_ai.direct",
    "pydantic_ai.models.anthropic",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai_compatible",
    "holdfast.runtime.mcp.transport",
)


class Child:
    """A process of a fork server; what tests use of `subprocess.Popen`."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self._pidfd = os.pidfd_open(pid)
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self.returncode if self._ended(0) else None

    def wait(self, timeout: float) -> int:
        if not self._ended(timeout):
            raise TimeoutError(f"process {self.pid} is still there after {timeout} s")
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, name: signal.Signals) -> None:
        """Safe at any time: the number belongs to this process until it was reaped."""
        if self.returncode is None:
            os.kill(self.pid, name)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, seconds: float) -> bool:
        if self.returncode is None and select.select([self._pidfd], [], [], seconds)[0]:
            os.close(self._pidfd)
            self.returncode = self._server.ask({"reap": self.pid})["code"]
        return self.returncode is not None


class ForkServer:
    """Our connection to one that this or another process has started; it ends with the last connection."""

    def __init__(self, name: str, *imports: str) -> None:
        self._lock = threading.Lock()
        self._socket = _connect(f"\0holdfast-{RUN}-{name}", imports)
        self._answers = self._socket.makefile("r")

    def spawn(self, arguments: list[str], *, stderr: Path) -> Child:
        return Child(self, self.ask({"spawn": arguments, "stdio": [os.devnull, os.devnull, str(stderr)]})["pid"])

    def run(
        self, arguments: list[str], *, stdin: bytes, env: dict[str, str], timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Run a script to its end: its exit code, its output and its errors."""
        with tempfile.TemporaryDirectory(prefix="holdfast-cli-") as place:
            files = [Path(place, name) for name in ("stdin", "stdout", "stderr")]
            files[0].write_bytes(stdin)
            request: dict[str, object] = {
                "spawn": arguments,
                "stdio": [*map(str, files)],
                "env": env,
                "cwd": str(Path.cwd()),
            }
            child = Child(self, self.ask(request)["pid"])
            try:
                code = child.wait(timeout)
            except TimeoutError:
                child.kill()
                child.wait(timeout)
                raise
            return code, files[1].read_bytes(), files[2].read_bytes()

    def show(
        self, arguments: list[str], *, terminal: str, env: dict[str, str], cwd: Path | None = None, anew: bool = False
    ) -> Child:
        """Run a script on a terminal that is its own; or start the interpreter anew, with these arguments."""
        request: dict[str, object] = {"spawn": arguments, "terminal": terminal, "env": env, "anew": anew}
        return Child(self, self.ask(request | {"cwd": str(cwd or Path.cwd())})["pid"])

    def ask(self, request: dict[str, object]) -> dict[str, Any]:
        with self._lock:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            answer: dict[str, Any] = json.loads(self._answers.readline())
        return answer


_started: list[subprocess.Popen[bytes]] = []


def _connect(address: str, imports: tuple[str, ...]) -> socket.socket:
    """Whoever is the first to have the address starts the program."""
    while True:
        with socket.socket(socket.AF_UNIX) as listener:
            try:
                listener.bind(address)
            except OSError:
                pass  # another one was
            else:
                listener.listen()
                command = [sys.executable, __file__, str(listener.fileno()), *imports]
                fds = [listener.fileno()]
                _started.append(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=fds))
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(address)
        except ConnectionRefusedError:  # it does not listen yet, or has just ended
            connection.close()
            time.sleep(0.01)
        else:
            return connection


@functools.cache
def fork_server(*, with_models: bool = False) -> ForkServer:
    return ForkServer("models", "holdfast.app", *MODELS) if with_models else ForkServer("gateway", "holdfast.app")


@functools.cache
def cli_fork_server() -> ForkServer:
    verbs = pkgutil.walk_packages(holdfast.cli.__path__, "holdfast.cli.")
    return ForkServer("cli", *(module.name for module in verbs))


# --- the program ------------------------------------------------------------------------------------


def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        importlib.import_module(name)
    if "holdfast.app" in sys.argv:
        for part in importlib.import_module("holdfast.gateway.server").PARTS:
            assert part.routes  # their patterns stay in the cache of `re`
    gc.collect()
    gc.freeze()  # a child's collector leaves these pages shared: its start costs 125 ms of processor time, not 205
    clients: list[socket.socket] = [listener.accept()[0]]
    while clients:
        ready, _, _ = select.select([listener, *clients], [], [])
        for one in ready:
            if one is listener:
                clients.append(listener.accept()[0])
            elif line := _line(one):
                one.sendall(json.dumps(_answer(json.loads(line), [listener, *clients])).encode() + b"\n")
            else:
                clients.remove(one)
                one.close()


def _line(client: socket.socket) -> bytes:
    """Return its request, of which there is one at a time; nothing if it has left."""
    line = b""
    while not line.endswith(b"\n"):
        piece = client.recv(65_536)
        if not piece:
            return b""
        line += piece
    return line


def _answer(request: dict[str, Any], sockets: list[socket.socket]) -> dict[str, int]:
    if "reap" in request:
        _, status = os.waitpid(request["reap"], 0)
        return {"code": os.waitstatus_to_exitcode(status)}
    # opened before the answer, so that the client may close it
    terminal = os.open(request["terminal"], os.O_RDWR | os.O_NOCTTY) if "terminal" in request else None
    pid = os.fork()
    if pid == 0:
        for one in sockets:
            one.close()
        if terminal is not None:
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        _run(request, terminal)
    if terminal is not None:
        os.close(terminal)
    return {"pid": pid}


def _run(request: dict[str, Any], terminal: int | None) -> None:
    arguments, env = request["spawn"], request.get("env")
    flags = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for target, flag in enumerate(flags):
        file = terminal if terminal is not None else os.open(request["stdio"][target], flag, 0o600)
        os.dup2(file, target)
    os.closerange(3, 64)
    os.chdir(request.get("cwd", "."))
    if request.get("anew"):
        os.execve(sys.executable, [sys.executable, *arguments], request["env"])
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(0),
            os.fdopen(1, "w"),
            os.fdopen(2, "w", errors="backslashreplace"),
        )
    code = 1
    try:
        sys.argv = arguments
        sys.path[0] = str(ROOT)
        runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
