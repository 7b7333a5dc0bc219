"""One process owns the home: an flock on a file of its own, never on the database.

The lock dies with its holder, also by `kill -9`. It is inherited by a bare fork, so the gateway
never forks without exec.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from holdfast.domain.errors import Conflict


class HomeLock:
    """Held from construction until `release`."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(self._fd, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._fd)
            raise Conflict(
                f"Another Holdfast process (pid {pid}) owns {path.parent.parent}.",
                hint="`holdfast status` shows it, `holdfast shutdown` ends it, or use another --home.",
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let go; the file stays."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
