"""A gateway that stands still just before it writes a certain kind of event, so that one can look at it.

holding_gateway.py HOME PORT OPTIONS KIND
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from holdfast.store.contract import Append, Appended
from holdfast.store.sqlite.store import SqliteStore
from holdfast.timings import StoreTimings
from tests.e2e.serve import die_with_parent, options


class HoldingStore(SqliteStore):
    """Never comes to write that kind."""

    def __init__(self, path: Path, *, kind: str) -> None:
        super().__init__(path)
        self._kind = kind

    async def append(self, append: Append) -> Appended:
        if self._kind in {type(event).__name__ for write in append.writes for event in write.events}:
            await asyncio.Event().wait()
        return await super().append(append)


def main() -> int:
    from holdfast.app import serve
    from holdfast.config import Home

    home, port, given, kind = sys.argv[1:]
    die_with_parent()

    async def open_store(path: Path, _: StoreTimings) -> HoldingStore:
        return HoldingStore(path, kind=kind)

    return serve(
        Home(Path(home)), port=int(port), background=True, open_store=open_store, timings=options(given).timings
    )


if __name__ == "__main__":
    sys.exit(main())
