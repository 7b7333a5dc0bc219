"""A gateway that dies at its N-th write, without a goodbye: `os._exit` before or after the commit.

    crashing_gateway.py HOME PORT OPTIONS before|after N COMMAND

It counts every write to the store (events, leases, the text so far) from the command with that id on.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from holdfast.store.contract import Append, Appended, Lease
from holdfast.store.rows import PartialText
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import StoreTimings
from tests.e2e.serve import die_with_parent, options

CRASHED = 86


class CrashingStore(SqliteStore):
    """Counts its writes, and at one of them the process is gone."""

    def __init__(self, path: Path, *, when: str, at: int, command: str) -> None:
        super().__init__(path)
        self._when = when
        self._at = at
        self._command = command
        self._count = 0

    def _before(self, *, first: bool = False) -> int:
        """The number of this write; others may begin before it ends."""
        if self._count or first:
            self._count += 1
            self._crash_point("before", self._count)
        return self._count

    def _crash_point(self, when: str, number: int) -> None:
        if (when, number) == (self._when, self._at):
            os._exit(CRASHED)

    async def append(self, append: Append) -> Appended:
        number = self._before(first=append.command is not None and append.command.id == self._command)
        try:
            return await super().append(append)
        finally:  # also when it lost a race and was refused
            self._crash_point("after", number)

    async def claim(self, stream: str, *, holder: str) -> Lease:
        number = self._before()
        lease = await super().claim(stream, holder=holder)
        self._crash_point("after", number)
        return lease

    async def save_partial(self, lease: Lease, partial: PartialText) -> None:
        number = self._before()
        await super().save_partial(lease, partial)
        self._crash_point("after", number)


def main() -> int:
    from holdfast.app import serve
    from holdfast.config import Home

    home, port, given, when, at, command = sys.argv[1:]
    die_with_parent()

    async def open_store(path: Path, _: StoreTimings) -> CrashingStore:
        return CrashingStore(path, when=when, at=int(at), command=command)

    return serve(
        Home(Path(home)), port=int(port), background=True, open_store=open_store, timings=options(given).timings
    )


if __name__ == "__main__":
    sys.exit(main())
