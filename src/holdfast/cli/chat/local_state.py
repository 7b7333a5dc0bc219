"""What the chat stores in the home (mode 0600): how far each session was read, and the input history.

Several chats may run at once: cursors only grow and are merged under a lock; a line of history is one write.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.config import Home

CURSORS = 1_000
LINES = 1_000
HISTORY_BYTES = 1_000_000


def state_folder(home: Home) -> Path:
    """Where it is kept."""
    path = home.path / "chat"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


class ReadCursors:
    """How far the person at this terminal has read each session."""

    def __init__(self, place: Path) -> None:
        self._path = place / "cursors.json"
        self._lock = place / "cursors.lock"

    def get(self, session: str) -> int | None:
        """The last version that was shown; None if it never was."""
        return self._read().get(session)

    def set(self, session: str, version: int) -> None:
        """Note that everything up to this version was shown."""
        with _locked(self._lock):
            cursors = self._read()
            version = max(version, cursors.pop(session, 0))
            cursors[session] = version
            kept = dict(list(cursors.items())[-CURSORS:])
            _replace(self._path, json.dumps(kept).encode())

    def _read(self) -> dict[str, int]:
        """Read the file. A damaged one counts as empty: then more is shown as unread, and nothing else is lost."""
        try:
            found = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {str(id): version for id, version in found.items() if isinstance(version, int)}


class InputHistory:
    """The input history: one JSON text per line."""

    def __init__(self, place: Path) -> None:
        self._path = place / "history"

    def load(self) -> list[str]:
        """Return the texts, oldest first."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return []
        texts: list[str] = []
        for line in data.splitlines()[-LINES:]:
            with suppress(ValueError):  # cut by a full disk
                text = json.loads(line)
                if isinstance(text, str):
                    texts.append(text)
        if len(data) > HISTORY_BYTES:
            with suppress(OSError):  # a full disk: it is shortened another time
                _replace(self._path, "".join(json.dumps(text) + "\n" for text in texts[-LINES // 2 :]).encode())
        return texts

    def add(self, text: str) -> None:
        """Add a text. An error of the disk is ignored: the conversation is more important."""
        with suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, (json.dumps(text) + "\n").encode())
            finally:
                os.close(file)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _replace(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(data)
    new.replace(path)
