"""One process owns the home: an flock on a file of its own, never on the database.

The lock dies with its holder, also by `kill -9`. It is inherited by a bare fork, so the gateway
never forks without exec.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from holdfast.domain.errors import Conflict

TRIES = 5
PAUSE_SECONDS = 0.05


class HomeLock:
    """Held from construction until `release`."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if not self._take():
            pid = _read_pid(self._fd)
            os.close(self._fd)
            raise Conflict(
                f"Another Holdfast process (pid {pid}) owns {path.parent.parent}.",
                hint="`holdfast status` shows it, `holdfast shutdown` ends it, or use another --home.",
            )
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def _take(self) -> bool:
        """More than one try, since somebody may just be looking (`owner`)."""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE_SECONDS)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
        return False

    def release(self) -> None:
        """Let go; the file stays."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def owner(path: Path) -> str | None:
    """The pid of the process that owns the home, or None; it only looks."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_pid(file)
    else:
        return None
    finally:
        os.close(file)


def _read_pid(file: int) -> str:
    return os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
