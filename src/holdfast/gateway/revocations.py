"""Revocations that the database could not take: a small file whose space is reserved while there is some.

On a full disk nothing can be added to the database, but bytes that a file already has can be overwritten. So a revoked
device stays revoked, also when the gateway is killed before there is space again. The file is read at every start and
emptied when all of it is in the database.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from pathlib import Path

SIZE = 4096
"""Room for 240 devices."""
LINE = re.compile(rb"[0-9a-f]{16}\n")
log = logging.getLogger(__name__)


class Revocations:
    """The devices that are revoked and still in the database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._lines: list[str] = []
        """What the file says; more than `pending` until all are done."""
        self.pending: frozenset[str] = frozenset()

    def open(self) -> frozenset[str]:
        """Read what an earlier gateway could not store, and reserve the space for the next time."""
        try:
            found = self._path.read_bytes() if self._path.exists() else b""
            self._lines = [line.decode().strip() for line in LINE.findall(found)]
            if len(found) < SIZE:
                self._write()
        except OSError as error:
            log.warning("no space is reserved for revocations on a full disk: %s", error)
        self.pending = frozenset(self._lines)
        return self.pending

    def add(self, device: str) -> bool:
        """Store one; whether that worked."""
        with self._lock:
            self.pending |= {device}
            self._lines.append(device)
            try:
                self._write()
            except OSError as error:
                log.warning("the revocation of device %s cannot be stored: %s", device, error)
                return False
            return True

    def done(self, device: str) -> None:
        """It is in the database. The file is emptied with the last one, so that no line is ever moved."""
        with self._lock:
            self.pending -= {device}
            if self.pending:
                return
            self._lines = []
            try:
                self._write()
            except OSError as error:
                log.warning("%s is not emptied; that harms nobody: %s", self._path, error)

    def _write(self) -> None:
        """In place: a new file would need space."""
        text = "".join(f"{line}\n" for line in self._lines).encode()
        if len(text) > SIZE:
            raise OSError("too many at once")
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.pwrite(file, text.ljust(SIZE, b"\0"), 0)
            os.fsync(file)
        finally:
            os.close(file)
