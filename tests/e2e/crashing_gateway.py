"""A gateway that dies at its N-th write, without a goodbye: `os._exit` before or after the commit.

    crashing_gateway.py HOME PORT CONSTANTS before|after N COMMAND

It counts every write to the store (events, leases, the text so far) from the command with that id on.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from holdfast.store.port import Append, Appended, Lease, PartialText
from holdfast.store.sqlite import SqliteStore
from tests.e2e.serve import die_with_parent, set_constants

CRASHED = 86


class CrashingStore(SqliteStore):
    """Counts its writes, and at one of them the process is gone."""

    def __init__(self, path: Path, *, when: str, at: int, command: str) -> None:
        super().__init__(path)
        self._when = when
        self._at = at
        self._command = command
        self._count = 0

    def _crash_point(self, when: str) -> None:
        if (when, self._count) == (self._when, self._at):
            os._exit(CRASHED)

    def _begin(self, *, first: bool = False) -> None:
        if self._count or first:
            self._count += 1
            self._crash_point("before")

    async def append(self, append: Append) -> Appended:
        self._begin(first=append.command is not None and append.command.id == self._command)
        appended = await super().append(append)
        self._crash_point("after")
        return appended

    async def claim(self, stream: str, *, holder: str) -> Lease:
        self._begin()
        lease = await super().claim(stream, holder=holder)
        self._crash_point("after")
        return lease

    async def release(self, lease: Lease) -> None:
        self._begin()
        await super().release(lease)
        self._crash_point("after")

    async def save_partial(self, lease: Lease, partial: PartialText) -> None:
        self._begin()
        await super().save_partial(lease, partial)
        self._crash_point("after")


def main() -> int:
    from holdfast.app import serve
    from holdfast.config import Home

    home, port, constants, when, at, command = sys.argv[1:]
    die_with_parent()
    set_constants(constants)
    return serve(
        Home(Path(home)),
        port=int(port),
        background=True,
        open_store=lambda path: CrashingStore(path, when=when, at=int(at), command=command),
    )


if __name__ == "__main__":
    sys.exit(main())
