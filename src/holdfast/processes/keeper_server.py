"""The keeper server: a warm interpreter that forks keepers, so that no command waits for a Python to start.

    gateway ── keeper server ── standby ── keeper ── command

The gateway runs this file alone, by its path (`python -I -S keeper_server.py KEEPER PADDING`), with a SEQPACKET socket
as descriptor 0. It is never forked from the gateway, so that it holds none of its files, and not the lock of the home.

A request is the path of a task's directory, with three descriptors: the directory, the order and the report. The answer
is the pid of the forked process, or the negative errno of a fork that was refused. A forked keeper has what a keeper
has that the gateway started: the same descriptors, session, signals, environment and command line.

The server has no state, and no command depends on it. It ends when the gateway does, since the socket is closed then.
Keepers that have ended leave no zombies: nobody needs their exit status.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import errno
import gc
import os
import resource  # noqa: F401 - forked keepers need it, and find it loaded
import sys
from _frozen_importlib_external import SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

SOCKET = 3
DIRECTORY = 3
"""In the keeper, which has no socket."""
DESCRIPTORS = 1 << 16
REQUEST_BYTES = 8192
INT_BYTES = 4
READY = b"ready"


def load_main(path: str) -> Callable[[str], None]:
    """Load the keeper from its file, or from its cached bytecode; return its `main`."""
    module: dict[str, object] = {"__name__": "keeper", "__file__": path}
    code = SourceFileLoader("keeper", path).get_code("keeper")
    assert code is not None
    exec(code, module)  # noqa: S102
    return module["main"]  # type: ignore[return-value]


def prepare() -> _socket.socket:
    """Let go of everything that the gateway was started with; return the socket."""
    os.dup2(0, SOCKET, inheritable=False)
    os.closerange(SOCKET + 1, DESCRIPTORS)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(null)
    os.chdir("/")
    _signal.pthread_sigmask(_signal.SIG_SETMASK, _signal.valid_signals())
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # the kernel reaps ended keepers
    return _socket.socket(fileno=SOCKET)


def receive(socket: _socket.socket) -> tuple[bytes, list[int]]:
    """Wait for a request: the path and its descriptors. No path means that the gateway is gone."""
    path, ancillary, _, _ = socket.recvmsg(REQUEST_BYTES, _socket.CMSG_SPACE(3 * INT_BYTES))
    numbers = b"".join(data for _, _, data in ancillary)
    pieces = (numbers[at : at + INT_BYTES] for at in range(0, len(numbers) - INT_BYTES + 1, INT_BYTES))
    return path, [int.from_bytes(piece, sys.byteorder) for piece in pieces]


class KeeperServer:
    """Forks keepers on request."""

    def __init__(self, socket: _socket.socket, keeper: str) -> None:
        self._socket = socket
        self._main = load_main(keeper)
        self._words = [*map(os.fsencode, (*sys.orig_argv[:3], keeper))]
        self._shown_at = command_line_range()

    def serve(self) -> None:
        """Fork a keeper for each request, until the gateway closes the socket."""
        gc.collect()
        gc.freeze()
        gc.disable()  # it would write to pages that are shared with the keepers
        self._socket.send(READY)
        while True:
            path, descriptors = receive(self._socket)
            if not path:
                return
            try:
                answer = os.fork() if len(descriptors) == 3 else -errno.EINVAL
            except OSError as error:
                answer = -(error.errno or errno.EAGAIN)
            if answer == 0:
                self._become_keeper(path, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            self._socket.send(b"%d" % answer)

    def _become_keeper(self, path: bytes, descriptors: list[int]) -> NoReturn:
        """Run the keeper in the forked process. Whatever is raised, in any process that it forks, is no success."""
        status = 1
        try:
            self._socket.detach()
            directory, order, report = descriptors
            os.setsid()
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            for descriptor, number in ((order, 0), (report, 1), (report, 2), (directory, DIRECTORY)):
                os.dup2(descriptor, number)
            show_command_line([*self._words, path], *self._shown_at)
            self._main(os.fsdecode(path))
            status = 0
        finally:
            os._exit(status)


def command_line_range() -> tuple[int, int]:
    """Find the command line of this process in its memory: where it starts, and its length."""
    file = os.open("/proc/self/stat", os.O_RDONLY)
    text = os.read(file, 4096)
    os.close(file)
    start, end = map(int, text[text.rindex(b")") + 2 :].split()[45:47])
    return start, end - start


def show_command_line(words: list[bytes], start: int, length: int) -> None:
    """Replace the command line that `ps` shows by one that names the task."""
    try:
        memory = os.open("/proc/self/mem", os.O_WRONLY)
        os.pwrite(memory, b"\0".join(words).ljust(length, b"\0")[:length], start)
        os.close(memory)
    except OSError:
        return  # then it shows the server's


if __name__ == "__main__":
    try:
        KeeperServer(prepare(), sys.argv[1]).serve()
    except ConnectionError:
        sys.exit(0)  # the gateway was killed while it waited for an answer
