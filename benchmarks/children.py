"""Processes beside us: children that answer JSON lines, and gateways. Each is ended by whoever started it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from holdfast.config import Home

ROOT = Path(__file__).parent.parent
START_SECONDS = 30.0
END_SECONDS = 10.0


class Child:
    """A process that reads one JSON object a line and answers each with one."""

    def __init__(self, *command: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | environment,
        )
        self.pid = self._process.pid
        self.greeting = self.answer()

    def tell(self, **message: object) -> None:
        """Say something whose answer is taken later."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The next line that it says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ChildProcessError(f"the child ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, **message: object) -> dict[str, Any]:
        """Say something and wait for the answer."""
        self.tell(**message)
        return self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)


def python(module: str, *arguments: str) -> Child:
    """A child of this package in the same interpreter."""
    return Child(sys.executable, "-m", f"benchmarks.{module}", *arguments)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask, wait, and only then insist."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def gateway(home: Home, *program: str) -> Iterator[tuple[int, int]]:
    """A gateway on a free port, from the outside: its pid and its port, once it answers.

    The program is a module and its first arguments; by default it is Holdfast itself.
    """
    port = free_port()
    serve = ["serve", "--background", "--port", str(port), "--home", str(home.path)]
    command = [sys.executable, "-m", *(program or ("holdfast",)), *serve]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_until_healthy(port)
        yield process.pid, port
    finally:
        end(process)


def wait_until_healthy(port: int) -> None:
    """Ask until `/healthz` answers 200."""
    until = time.monotonic() + START_SECONDS
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return
        if time.monotonic() > until:
            raise TimeoutError(f"no gateway answers on port {port}")
        time.sleep(0.005)


def wait_until_ready(home: Home) -> str:
    """Wait until a gateway takes messages, which is a moment after its first answer; the token."""
    until = time.monotonic() + START_SECONDS
    while not home.address.exists():
        if time.monotonic() > until:
            raise TimeoutError(f"no gateway of {home.path} takes messages")
        time.sleep(0.005)
    return home.token.read_text().strip()


def free_port() -> int:
    """A port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def megabytes(pid: int) -> float:
    """The resident memory of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def upgrade(port: int, token: str, path: str) -> str:
    """The request that opens a WebSocket."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
