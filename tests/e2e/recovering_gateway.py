"""A gateway that takes its time to find out what is open: `recovering_gateway.py HOME PORT OPTIONS GATE`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.e2e.serve import die_with_parent, options


def main() -> int:
    home, port, given, gate = sys.argv[1:]
    die_with_parent()
    from holdfast.app import serve
    from holdfast.config import Home
    from holdfast.tasks.commands import CommandTasks

    start = CommandTasks.start

    async def late(self: CommandTasks) -> None:
        while not Path(gate).exists():
            await asyncio.sleep(0.01)
        await start(self)

    CommandTasks.start = late  # type: ignore[method-assign]
    return serve(Home(Path(home)), port=int(port) if port else None, background=True, timings=options(given).timings)


if __name__ == "__main__":
    sys.exit(main())
