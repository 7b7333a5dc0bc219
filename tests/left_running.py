"""Processes that the tests have left running: keepers of this checkout, and what works in a directory of this run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KEEPERS = str(Path(__file__).parents[1] / "src/holdfast/processes") + "/"
PATIENCE_SECONDS = 60.0
"""A keeper whose command has ended records that first."""


@dataclass(frozen=True, slots=True)
class Process:
    """One that is running."""

    pid: int
    command: str
    directory: str

    def __str__(self) -> str:
        places = f"{self.command} {self.directory}".replace(" ", "/").split("/")
        tests = [part for part in places if part.startswith("test_") and not part.endswith(".py")]
        return f"process {self.pid} of {tests[0] if tests else 'an unknown test'}: {self.command}"


def left_running(
    directory: Path, *, since: float, patience: float = PATIENCE_SECONDS, keepers: str = KEEPERS
) -> list[Process]:
    """Return the processes of this run that do not end.

    `directory` is where its tests have their files, `since` when it began, in seconds since the boot.
    `keepers` is where the program of its keepers is: those may have their files elsewhere.
    """
    deadline = time.monotonic() + patience
    while (found := [*_of_run(str(directory), since, keepers)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _of_run(directory: str, since: float, keepers: str) -> Iterator[Process]:
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        try:
            if pid == os.getpid() or _started_at(pid) < since:
                continue
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            place = str(Path(f"/proc/{pid}/cwd").readlink())
        except OSError:  # it has ended, or belongs to somebody else
            continue
        other_run = "/pytest-of-" in command  # of this checkout, too
        is_keeper = any(word.startswith(keepers) for word in command.split())
        if directory in f"{command} {place}" or (is_keeper and not other_run):
            yield Process(pid, command, place)


def _started_at(pid: int) -> float:
    """In seconds since the boot."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(after_name[19]) / os.sysconf("SC_CLK_TCK")
