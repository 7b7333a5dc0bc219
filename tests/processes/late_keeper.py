"""A keeper that pauses just before it claims the directory of its command, until the test lets it continue."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.processes.command import CommandSpec, Running
from holdfast.processes.identity import Identity, Process, alive, send, table
from holdfast.processes.launch import KEEPER, KeeperLauncher
from holdfast.processes.supervisor import Supervisor
from tests.eventually import eventually
from tests.processes.rig import DirectLauncher, with_server

LINK = 'os.link("claim.new", "claim")'


@dataclass(frozen=True, slots=True)
class LateKeeper:
    identity: Identity
    starting: asyncio.Task[Running]
    """What the supervisor that started it waits for."""

    async def go_on(self) -> None:
        """Let it go on, until it has ended with all that it forked."""
        send(self.identity, signal.SIGCONT)
        await asyncio.wait({self.starting})

        async def gone() -> bool:
            return not alive(self.identity)

        await eventually(gone)


@asynccontextmanager
async def late_keeper(
    root: Path, command: CommandSpec, *, place: Path, forked: bool = True
) -> AsyncIterator[LateKeeper]:
    """Start a command whose keeper is late. The keeper server forks it, or it runs alone; its script is in `place`."""
    script = place / "late_keeper.py"
    script.write_text(KEEPER.read_text().replace(LINK, f"os.kill(os.getpid(), {int(signal.SIGSTOP)}); {LINK}"))
    launcher = await with_server(KeeperLauncher(script)) if forked else DirectLauncher(script)
    supervisor = Supervisor(root, launcher=launcher)
    starting = asyncio.create_task(supervisor.start(command))

    try:
        async with stopped_process(command.id) as keeper:
            yield LateKeeper(keeper, starting)
    finally:
        await asyncio.gather(starting, return_exceptions=True)
        await supervisor.close()
        launcher.close()


@asynccontextmanager
async def stopped_process(word: str) -> AsyncIterator[Identity]:
    """Wait until a process is stopped that has this word in its command line; kill it in the end.

    A test that failed would wait for ever for the report of a keeper that is stopped.
    """

    async def look() -> Process | None:
        for one in table().values():
            with suppress(FileNotFoundError, ProcessLookupError):  # others come and go meanwhile
                if one.state == "T" and word in Path(f"/proc/{one.pid}/cmdline").read_text():
                    return one
        return None

    found = await eventually(look)
    assert found is not None
    try:
        yield found.identity
    finally:
        send(found.identity, signal.SIGKILL)
