"""The files of a running gateway in `run/`: the lock, the owner's token and the address.

They are checked every second and restored if they were deleted (as cleaners of temporary directories do), so that
clients find the gateway. If the home itself was removed or replaced, the gateway shuts down, since everything that it
writes would be lost. On a full disk a file is overwritten in place.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
from pathlib import Path

from holdfast.config import Home
from holdfast.domain.errors import Conflict
from holdfast.periodic import PeriodicTask
from holdfast.store.home_lock import HomeLock

CHECK_SECONDS = 1.0
TOKEN = re.compile(r"[\w-]{43,}", re.ASCII)
"""At least 256 bits."""
log = logging.getLogger(__name__)


class RunFiles:
    """The files by which clients find this gateway and sign in."""

    def __init__(self, home: Home, lock: HomeLock, shutdown: asyncio.Event) -> None:
        self._home = home
        self._lock = lock
        self._shutdown = shutdown
        self._database: os.stat_result | None = None
        self._address = ""
        self._checks = PeriodicTask(self._check, name="run files", every=CHECK_SECONDS, first=CHECK_SECONDS)
        self.token = _token(home)

    def announce(self, address: dict[str, object]) -> None:
        """Write the address, and start checking the files."""
        self._address = json.dumps(address) + "\n"
        self._database = _found(self._home.database)
        self._restore()
        self._home.starting.unlink(missing_ok=True)
        self._checks.start()

    async def stop(self) -> None:
        """Stop checking, and remove the address. Its file is renamed, so that the space stays reserved."""
        await self._checks.stop()
        if self._address and self._lock.home_is_there and self._home.address.exists():
            self._home.address.replace(_spare(self._home.address))

    async def _check(self) -> None:
        if not self._lock.home_is_there:
            self._end(f"the home {self._home.path} was removed or replaced")
        elif not self._is_database(_found(self._home.database)):
            self._end(f"{self._home.database} was removed or replaced")
        else:
            try:
                self._restore()
            except Conflict as error:
                self._end(error.message)

    def _is_database(self, found: os.stat_result | None) -> bool:
        if self._database is None:  # it is not a file
            return True
        return found is not None and os.path.samestat(found, self._database)

    def _end(self, why: str) -> None:
        log.error("the gateway shuts down: %s", why)
        self._shutdown.set()

    def _restore(self) -> None:
        self._home.run.mkdir(mode=0o700, exist_ok=True)
        restored = ["lock"] if self._lock.restore() else []
        if not TOKEN.fullmatch(_text(self._home.token).strip()):  # a changed token takes effect at the next start
            _write(self._home.token, self.token + "\n")
            restored.append("token")
        if _text(self._home.address) != self._address:
            _write(self._home.address, self._address)
            restored.append("address")
        if restored:
            log.info("written to %s: %s", self._home.run, ", ".join(restored))


def port_of_killed(home: Home) -> int:
    """Return the port of the gateway that was here before, if it left its address behind; else 0."""
    found = re.search(r'"url": "http://127\.0\.0\.1:(\d{1,5})"', _text(home.address))
    port = 0 if found is None else int(found[1])
    return port if port < 1 << 16 else 0


def _token(home: Home) -> str:
    """Return the owner's token, which survives restarts so that clients stay signed in."""
    token = _text(home.token).strip()
    return token if TOKEN.fullmatch(token) else secrets.token_urlsafe(32)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _found(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _spare(path: Path) -> Path:
    return path.with_name(path.name + ".tmp")


def _write(path: Path, text: str) -> None:
    """Write a file atomically; if there is no space for a second file, overwrite it in place."""
    try:
        _write_over(_spare(path), text)
        _spare(path).replace(path)
    except OSError:
        _write_over(path, text)


def _write_over(path: Path, text: str) -> None:
    data = text.encode()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(file, 0o600)
        os.pwrite(file, data, 0)
        os.ftruncate(file, len(data))
        os.fsync(file)  # a power cut leaves the old text or the new one, not zeros
    finally:
        os.close(file)
