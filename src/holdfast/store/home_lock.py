"""One process owns the home: an flock on the home's directory, and on a file that names the process.

Never on the database. The directory is what decides: a file in `run/` can be deleted under a live gateway (cleaners of
temporary directories do that), and a lock on a deleted file excludes nothing. The locks die with their holder, also
by `kill -9`. They are inherited by a bare fork, so the gateway never forks without exec.
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
        self._path = path
        self._home = path.parent.parent
        self._directory = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._file = -1
        try:
            self._take(self._directory)
            self._open()
        except BaseException:
            self.release()
            raise

    def _take(self, file: int) -> None:
        """Try several times: another process may hold it for a moment, in `owner`."""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE_SECONDS)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
        raise Conflict(
            f"A gateway (pid {_owner_pid(self._path)}) is already running in {self._home}.",
            hint="`holdfast open` opens its dashboard, `holdfast shutdown` ends it; or use another --home.",
        )

    def _open(self) -> None:
        """Lock the file too: it names the owner, and older versions of Holdfast check only this file."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._take(self._file)
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
            text = f"{os.getpid()}\n".encode()
            os.pwrite(self._file, text, 0)  # before it is cut to length: on a full disk it keeps its space
            os.ftruncate(self._file, len(text))

    @property
    def home_is_there(self) -> bool:
        """Whether the directory that is locked is still the home."""
        return _is_same(self._directory, self._home.resolve())

    def restore(self) -> bool:
        """Create the file again if it was deleted; return whether it was. Conflict if another process has it now."""
        if _is_same(self._file, self._path):
            return False
        os.close(self._file)
        self._file = -1
        self._open()
        return True

    def release(self) -> None:
        """Let go; the file stays."""
        for file in (self._file, self._directory):
            if file >= 0:
                os.close(file)
        self._file = self._directory = -1


def _is_same(file: int, path: Path) -> bool:
    try:
        return file >= 0 and os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def owner(path: Path) -> str | None:
    """The pid of the process that owns the home, or None; it only looks."""
    places = ((path.parent.parent, os.O_DIRECTORY), (path, os.O_NOFOLLOW))
    return _owner_pid(path) if any(_is_locked(place, flags) for place, flags in places) else None


def _is_locked(path: Path, flags: int) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


def _owner_pid(path: Path) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return "unknown"
    try:
        return os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(file)
