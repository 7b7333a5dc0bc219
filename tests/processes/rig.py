"""Real commands under a real supervisor, and nothing of them left behind."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.processes.command import CommandOutcome, CommandSpec, Ended, Running
from holdfast.processes.identity import Identity, alive, send, table
from holdfast.processes.keeper import boot_id
from holdfast.processes.launch import KeeperLauncher
from holdfast.processes.spool import Claim, Spool
from holdfast.processes.supervisor import Limits, Supervisor
from holdfast.timings import USUAL, ProcessTimings
from tests.eventually import eventually

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
PYTHON = sys.executable
MARK = b"HOLDFAST_TASK="
LAUNCHER = KeeperLauncher()
"""Shared by all tests of this process, so that the keeper server starts once."""


def fresh() -> str:
    return secrets.token_hex(8)


class ProcessRig:
    """A directory of commands and whoever supervises it now."""

    def __init__(
        self,
        root: Path,
        *,
        limits: Limits | None = None,
        launcher: KeeperLauncher = LAUNCHER,
        timings: ProcessTimings = USUAL.processes,
    ) -> None:
        self._timings = timings
        self.root = root / "tasks"
        self.cwd = root
        self.limits = limits
        self.launcher = launcher
        self.supervisor = Supervisor(self.root, limits, launcher=launcher, timings=timings)

    async def restart(self, timings: ProcessTimings | None = None) -> Supervisor:
        """Another supervisor that knows nothing of the first."""
        await self.supervisor.close()
        timings = timings or self._timings
        self.supervisor = Supervisor(self.root, self.limits, launcher=self.launcher, timings=timings)
        return self.supervisor

    def command(self, run: str | tuple[str, ...], **more: Any) -> CommandSpec:
        return replace(CommandSpec(id=fresh(), run=run, cwd=self.cwd, env=ENV), **more)

    async def start(self, run: str | tuple[str, ...], **more: Any) -> Running:
        return await self.supervisor.start(self.command(run, **more))

    async def run(self, run: str | tuple[str, ...], **more: Any) -> tuple[CommandOutcome, bytes]:
        running = await self.start(run, **more)
        outcome = await self.supervisor.wait(running.id)
        return outcome, self.everything(running.id)

    def spool(self, id: str) -> Spool:
        return Spool(self.root, id)

    def claim(self, id: str) -> Claim:
        claim = self.spool(id).claim()
        assert claim is not None
        return claim

    def everything(self, id: str) -> bytes:
        """The whole output; fails if any of it was dropped."""
        found, window = b"", self.supervisor.output(id).read(0, 1 << 20)
        while window.data:
            assert not window.dropped
            found += window.data
            window = self.supervisor.output(id).read(window.next, 1 << 20)
        return found

    def kill_keepers(self, id: str, *which: str) -> None:
        claim = self.claim(id)
        for name in which or ("keeper", "standby"):
            identity: Identity = getattr(claim, name)
            send(identity, signal.SIGKILL)

    async def keepers_gone(self, id: str, *which: str) -> None:
        claim = self.claim(id)

        async def gone() -> bool:
            return not any(alive(getattr(claim, name)) for name in which or ("keeper", "standby"))

        await eventually(gone)

    async def close(self) -> None:
        """Kill what is left, by its id, and wait until nobody is there any more."""
        ids = [path.name for path in self.root.iterdir() if not path.name.startswith(".")]
        claims = {id: claim for id in ids if (claim := self.spool(id).claim()) is not None and claim.boot == boot_id()}
        for id, claim in claims.items():
            if any(map(alive, (claim.command, *claim.keepers))):
                assert not (await self.supervisor.kill(id, grace=0)).survivors

        async def quiet() -> bool:
            return not any(alive(keeper) for claim in claims.values() for keeper in claim.keepers)

        await eventually(quiet)
        await self.supervisor.close()
        assert not strays(claim.task for claim in claims.values())


class DirectLauncher(KeeperLauncher):
    """Starts every keeper without a server."""

    def start_server(self) -> None:
        pass


async def with_server(launcher: KeeperLauncher) -> KeeperLauncher:
    """The same, when its server is ready."""
    launcher.start_server()

    async def ready() -> bool:
        return launcher.server_is_ready()

    await eventually(ready)
    return launcher


def strays(tasks: Iterable[str]) -> list[int]:
    """Whoever carries one of these marks."""
    wanted = set(tasks)
    found = []
    for pid in table():
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        marks = {text.removeprefix(MARK).decode() for text in variables if text.startswith(MARK)}
        found += [pid] if marks & wanted else []
    return found


def code(outcome: CommandOutcome) -> int | None:
    assert isinstance(outcome, Ended), outcome
    return outcome.code
