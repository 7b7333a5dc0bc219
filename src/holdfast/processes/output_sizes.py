"""The disk usage of the outputs of all commands.

All directories are looked at once; after that only those of commands that may have written since.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

from holdfast.processes.spool import OUTPUTS


class OutputSizes:
    """The size of every output below one directory. Safe to use from several threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._sizes: dict[str, int] | None = None

    def total(self, changed: Iterable[str]) -> int:
        """Return the bytes on disk; measures the commands that may have written since the last call."""
        with self._lock:
            if self._sizes is None:
                with os.scandir(self._root) as entries:
                    changed, self._sizes = [entry.name for entry in entries], {}
            for id in changed:
                self._sizes[id] = self._measure(id)
                if not self._sizes[id]:
                    del self._sizes[id]
            return sum(self._sizes.values())

    def _measure(self, id: str) -> int:
        total = 0
        for name in OUTPUTS:
            try:
                total += (self._root / id / name).stat(follow_symlinks=False).st_blocks * 512
            except OSError:
                continue
        return total
