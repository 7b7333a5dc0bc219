"""Starting a keeper: forked by the keeper server where that is ready, otherwise as an interpreter of its own.

The order (what to run) goes through memory, never through a file, and is complete before it is read. The report is a
pipe that the keeper closes when the command has begun or will not; it carries the reason if there is one.

A server that is dead, is frozen or cannot fork costs a start some time and nothing else. Before the start is repeated
without it, the directory is claimed in place of the keeper. That fails if the server has forked one that was first.
"""

from __future__ import annotations

import marshal
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

from holdfast.domain.errors import Conflict
from holdfast.processes.command import TASK_VARIABLE, CommandSpec
from holdfast.processes.keeper import DIRECTORY
from holdfast.processes.keeper_server import READY
from holdfast.processes.open_files import INHERITED
from holdfast.processes.spool import Spool

KEEPER = Path(__file__).with_name("keeper.py")
KEEPER_SERVER = Path(__file__).with_name("keeper_server.py")
REPORT_BYTES = 65_536
ANSWER_SECONDS = 1.0
"""A server that takes longer than this to fork counts as frozen, and is replaced."""
PADDING = " " * 1024
"""Room for the command lines of forked keepers, which name their directory."""

Descriptors = tuple[int, int, int]
"""What a keeper gets: directory, order, report."""


class KeeperLauncher:
    """Starts keepers, and the server that forks them. Safe to use from several threads."""

    def __init__(self, keeper: Path = KEEPER) -> None:
        self._keeper = keeper
        self._lock = threading.Lock()
        """Held while the server forks, and while it is replaced."""
        self._server: KeeperServerClient | None = None
        self._children = own_keepers()

    def launch(self, spool: Spool, command: CommandSpec) -> str:
        """Start a keeper; return when the command has begun or will not, with the error that the keeper reports."""
        if self.server_is_ready():
            report = _launch(spool, command, lambda files: self._fork(spool, files))
            if report is not None:
                return report
        report = _launch(spool, command, lambda files: self._spawn(spool, files))
        self.start_server()
        return report or ""

    def server_is_ready(self) -> bool:
        """Return whether the server can fork the next keeper. A server that ended is dropped."""
        with self._lock:
            try:
                return self._server is not None and self._server.is_ready()
            except OSError:
                self._drop_server()
                return False

    def start_server(self) -> None:
        """Start the server, unless there is one. It is ready some milliseconds later."""
        with self._lock:
            if self._server is None:
                self._server = KeeperServerClient(self._keeper)

    def reap(self) -> None:
        """Reap keepers and servers that have ended and are children of this process."""
        for pid in list(self._children):
            try:
                ended, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                ended = pid
            if ended:
                self._children.discard(pid)

    def close(self) -> None:
        """End the server. The keepers stay."""
        with self._lock:
            ended = self._drop_server()
        if ended is not None:
            os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
        self.reap()

    def _fork(self, spool: Spool, descriptors: Descriptors) -> bool:
        """Let the server fork a keeper; return False if it did not, or did not answer."""
        with self._lock:
            if self._server is None:
                return False
            try:
                return self._server.fork(spool.path, descriptors)
            except OSError:
                self._drop_server()
                return False

    def _spawn(self, spool: Spool, descriptors: Descriptors) -> bool:
        """Start an interpreter that becomes the keeper."""
        directory, order, report = descriptors
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", _program(self._keeper), str(spool.path)],
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, file, at)
                for file, at in ((order, 0), (report, 1), (report, 2), (directory, DIRECTORY))
            ],
            setsid=True,
        )
        self._children.add(pid)
        return True

    def _drop_server(self) -> int | None:
        """End it and forget it; its keepers do not need it. Returns the pid that is left to be reaped."""
        if self._server is None:
            return None
        pid, self._server = self._server.end(), None
        self._children.add(pid)
        return pid


class KeeperServerClient:
    """Starts the keeper server and talks to it. After an `OSError` it is of no more use."""

    def __init__(self, keeper: Path) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        self._ready = False
        with theirs:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", _program(KEEPER_SERVER), str(keeper), PADDING],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_RDWR, 0),
                ],
                setsid=True,
            )

    def is_ready(self) -> bool:
        """Whether it has started and waits for requests. Does not wait for it."""
        if not self._ready:
            try:
                answer = self._socket.recv(len(READY))
            except BlockingIOError:
                return False
            if answer != READY:
                raise BrokenPipeError("The keeper server ended.")
            self._ready = True
            self._socket.settimeout(ANSWER_SECONDS)
        return True

    def fork(self, directory: Path, descriptors: Descriptors) -> bool:
        """Fork a keeper; False if the system refused the fork."""
        socket.send_fds(self._socket, [os.fsencode(directory)], descriptors)
        answer = self._socket.recv(32)
        if not answer:
            raise BrokenPipeError("The keeper server ended.")
        return int(answer) > 0

    def end(self) -> int:
        """Kill it, also if it is frozen; return its pid, which must be reaped."""
        self._socket.close()
        os.kill(self.pid, signal.SIGKILL)  # it is not reaped yet, so the pid is its own
        return self.pid


def own_keepers() -> set[int]:
    """Return the keepers that are children of this process: a restart keeps the process."""
    package = os.fsencode(KEEPER.parent) + b"/"
    try:
        pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return {int(pid) for pid in pids if package in Path(f"/proc/{pid}/cmdline").read_bytes()}
    except OSError:  # one ended meanwhile, or this kernel has no such list
        return set()


def _launch(spool: Spool, command: CommandSpec, start: Callable[[Descriptors], bool]) -> str | None:
    """Start a keeper in this way and read its report; `None` if none was started and none will be."""
    directory, order = _directory(spool), _write_order(command)
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as report:
        try:
            started = start((directory, order, writer))
        finally:
            for file in (directory, order, writer):
                os.close(file)
        if not started and spool.cancel():
            return None
        return report.read(REPORT_BYTES).decode("utf-8", "replace").strip()


@cache
def _bytecode(script: Path) -> Path:
    """Compile a script, unless that was done before: Python stores the bytecode of modules, but not of scripts."""
    SourceFileLoader(script.stem, str(script)).get_code(script.stem)
    return Path(cache_from_source(script))


def _program(script: Path) -> str:
    """Find what to run: the bytecode if it is of this very script, which Python does not check, or else the script."""
    bytecode, source = _bytecode(script), script.stat()
    numbers = (0, int(source.st_mtime), source.st_size)
    header = MAGIC_NUMBER + b"".join((number & 0xFFFFFFFF).to_bytes(4, "little") for number in numbers)
    try:
        with bytecode.open("rb") as file:
            return str(bytecode if file.read(len(header)) == header else script)
    except OSError:
        return str(script)


def _directory(spool: Spool) -> int:
    """Create and open the directory; one of a start that was cancelled is removed first."""
    try:
        spool.path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not spool.cancel():
            raise Conflict(f"The task {spool.id} was started before.") from None
        spool.remove()
        spool.path.mkdir(mode=0o700, parents=True)
    return os.open(spool.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _write_order(command: CommandSpec) -> int:
    task = f"{command.id}.{secrets.token_hex(8)}"
    order = {
        "argv": command.argv,
        "cwd": str(command.cwd),
        "env": {**command.env, TASK_VARIABLE: task},
        "head": command.head,
        "open_files": INHERITED,
        "sandbox": list(command.sandbox),
        "stderr": command.stderr,
        "stdin": command.stdin,
        "stdout": command.stdout,
        "tail": command.tail if command.tail is not None else -1,
        "task": task,
        "umask": command.umask,
    }
    memory = os.memfd_create("order")
    with os.fdopen(memory, "wb", closefd=False) as file:
        marshal.dump(order, file)
    os.lseek(memory, 0, os.SEEK_SET)
    return memory
