"""Whether an agent died for lack of memory: agents take 100 to 600 MB each, so machines run out of it."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.store.rows import TaskRow

VMSTAT = Path("/proc/vmstat")
KILLED = 137
"""The exit code of a shell whose program was killed by signal 9."""
WORDS = re.compile(r"heap out of memory|out of memory|cannot allocate memory|^MemoryError", re.I | re.M)


class MemoryKills:
    """How many processes the kernel has killed for lack of memory since this was made."""

    def __init__(self, file: Path = VMSTAT) -> None:
        self._file = file
        self._before = self._count()

    def new(self) -> int | None:
        """Return how many; None where the kernel does not count them."""
        now = self._count()
        return None if now is None or self._before is None else max(0, now - self._before)

    def _count(self) -> int | None:
        try:
            found = re.search(r"^oom_kill (\d+)$", self._file.read_text(), re.M)
        except OSError:
            return None
        return None if found is None else int(found[1])


def out_of_memory(row: TaskRow, said: str, *, killed: int | None) -> str:
    """Return that a process ended for lack of memory, with the evidence; empty if nothing shows it.

    `said` is what it wrote last, `killed` how many processes the kernel killed for that reason meanwhile.
    """
    if row.stop_by:
        return ""
    how = row.reason
    if WORDS.search(said):
        return f"out of memory, as it reported; {how}"
    if row.signal != "SIGKILL" and row.exit_code != KILLED:
        return ""
    if killed:
        return f"out of memory: the kernel killed it or another process for that reason meanwhile; {how}"
    return f"{how}, perhaps for lack of memory" if killed is None else ""
