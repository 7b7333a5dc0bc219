"""The environment of a person's command between its acceptance and its start.

An accepted command is started even if the gateway is killed, and with the environment that it was accepted with. That
may hold secrets, so it is not in the log: it is a file that only the user can read, and it is deleted as soon as the
command has begun.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from holdfast.processes.keeper import sync_directory

DIRECTORY = ".environments"
_decode = msgspec.json.Decoder(dict[str, str]).decode


class Environments:
    """One file for each command that has not begun."""

    def __init__(self, root: Path) -> None:
        self._root = root / DIRECTORY

    def keep(self, task: str, environment: Mapping[str, str]) -> None:
        """Store an environment durably."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(self._root / task, flags, 0o600), "wb") as file:
            file.write(msgspec.json.encode(dict(environment)))
            file.flush()
            os.fsync(file.fileno())
        sync_directory(str(self._root))

    def read(self, task: str) -> dict[str, str] | None:
        """Return an environment; `None` if it is not there or cannot be read."""
        try:
            with os.fdopen(os.open(self._root / task, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                return _decode(file.read())
        except (OSError, msgspec.MsgspecError):
            return None

    def drop(self, task: str) -> None:
        """Delete an environment that is not needed any more."""
        (self._root / task).unlink(missing_ok=True)

    def kept(self) -> set[str]:
        """Return the tasks whose environments are stored."""
        return {path.name for path in self._root.iterdir()} if self._root.exists() else set()
