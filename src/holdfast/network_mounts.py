"""Work on files that may hang: a network file system whose server is gone answers no call, for hours.

A call that hangs on the event loop stops the whole gateway. On a local disk a thread (60 to 120 µs) costs ten times as
much as the calls themselves. So such work gets a thread where a network file system is mounted, and none elsewhere.
A tool that takes time has a thread in any case; there it is one of its own instead of one of the shared pool, which a
few that hang would use up. Nobody waits at the end of the process for a thread that hangs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
TABLE = Path("/proc/self/mountinfo")
STOP_SECONDS = 10.0
READ_SECONDS = 5.0
"""How old the answer may be: mounts are rare."""
NETWORK = {"9p", "afs", "beegfs", "ceph", "cifs", "davfs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "smb3"}
NETWORK |= {f"fuse.{name}" for name in ("davfs2", "glusterfs", "rclone", "s3fs", "sshfs")}


class NetworkMounts:
    """Knows whether any network file system is mounted. Any: a link can lead from everywhere to everywhere."""

    def __init__(self, table: Path = TABLE) -> None:
        self._table = table
        self._found = False
        self._read_at = float("-inf")

    @property
    def found(self) -> bool:
        """Whether there is one. The table is the kernel's own text: reading it never hangs."""
        now = time.monotonic()
        if now - self._read_at >= READ_SECONDS:
            self._found, self._read_at = _names_network(self._table), now
        return self._found

    async def run(self, work: Callable[[], T]) -> T:
        """Do work that looks up files, or reads little of them: on the loop unless it may hang."""
        return await _run_in_own_thread(work) if self.found else work()

    async def run_in_thread(self, work: Callable[[threading.Event], T]) -> T:
        """Do work that takes time, in a thread. When cancelled, set the event that the work is given, and wait for its
        end, so that it does nothing afterwards.
        """
        stop = threading.Event()
        in_thread = _run_in_own_thread if self.found else asyncio.to_thread
        running = asyncio.ensure_future(in_thread(lambda: work(stop)))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.set()
            done, _ = await asyncio.wait({running}, timeout=STOP_SECONDS)
            for ended in done:
                ended.exception()  # retrieved, so that asyncio does not warn: the call was cancelled anyway
            raise

    async def run_within(self, seconds: float | None, work: Callable[[], T]) -> T:
        """Do work that takes time and that nothing can stop, in a thread. TimeoutError after this many seconds."""
        async with asyncio.timeout(seconds):
            return await (_run_in_own_thread(work) if self.found else asyncio.to_thread(work))


async def _run_in_own_thread(work: Callable[[], T]) -> T:
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from here on the waiting caller may leave, and the work continues

    def in_thread() -> None:
        try:
            done.set_result(work())
        except Exception as error:  # raised where the work was asked for
            done.set_exception(error)

    threading.Thread(target=in_thread, name="holdfast-files", daemon=True).start()
    return await asyncio.wrap_future(done)


def _names_network(table: Path) -> bool:
    """Whether a line has a network file system behind its ` - `, as proc(5) describes the table."""
    try:
        lines = table.read_text(errors="replace").splitlines()
    except OSError:
        return False
    return any(line.partition(" - ")[2].partition(" ")[0] in NETWORK for line in lines)
