"""Starts commands, finds them again after a restart, waits for their ends, follows, feeds and kills them.

    start ─→ keeper ─→ Running ─ pidfd ─→ Ended | Lost
    attach ─→ Running | Ended | NeverStarted | Lost

A command is the child of its keeper and not ours: closing this, or being killed, changes nothing for it.
The caller of `start` has written the intent before, under the same id; after a crash `attach` returns its state.
Waiting costs nothing: a pidfd for each command reports its end to the loop.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.domain.errors import Conflict, Corrupt, NotFound, Rejected, Unavailable
from holdfast.processes import stdin
from holdfast.processes.activity import Activity, ActivityMeter, NotYet
from holdfast.processes.command import CommandOutcome, CommandSpec, CommandState, NeverStarted, Running
from holdfast.processes.evidence import state_of, wait_for_outcome
from holdfast.processes.identity import Identity, alive, exit_of, open_pidfd, require_proc
from holdfast.processes.keeper import boot_id
from holdfast.processes.kill import KillReport, Member, find_members, kill_tree, members
from holdfast.processes.launch import KeeperLauncher
from holdfast.processes.output_sizes import OutputSizes
from holdfast.processes.spool import OUTPUTS, Claim, OutputFile, Spool, Stream, Window, clear_removed
from holdfast.timings import USUAL, ProcessTimings

TICK_SECONDS = 1.0
ALONE_SECONDS = 0.05
"""How often an output is capped whose keepers are both dead."""
LEFT_SECONDS = 0.4
"""How long the other processes of an ended command have to end before they count as left behind."""
USAGE_SECONDS = 5.0
TEMPORARY = (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ECANCELED)
"""Errors that say nothing about the command: it may start the next time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a new command is refused."""

    live: int = 200
    """How many may run at once; the keepers of each need about 1.5 MB."""
    free_bytes: int = 512 << 20
    """How much must be free on the disk."""
    spool_bytes: int = 20 << 30
    """How much all outputs may take together."""


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """The disk usage of the outputs, and the free space."""

    spooled: int
    free: int


@dataclass(slots=True)
class _Watch:
    """A live command that is watched for its end."""

    spool: Spool
    claim: Claim
    outcome: asyncio.Future[CommandOutcome]
    pidfd: int | None


class Supervisor:
    """The commands below one directory. There is one supervisor at a time, since the gateway locks the home."""

    def __init__(
        self,
        root: Path,
        limits: Limits | None = None,
        *,
        launcher: KeeperLauncher | None = None,
        timings: ProcessTimings = USUAL.processes,
    ) -> None:
        require_proc()
        self._timings = timings
        self.root = root
        self._limits = limits or Limits()
        self._launcher = launcher or KeeperLauncher()
        self._own_launcher = launcher is None
        self._meter = ActivityMeter(timings)
        self._activities_lock = asyncio.Lock()
        self._live: dict[str, _Watch] = {}
        self._starting: dict[str, asyncio.Task[Running]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._ticker: asyncio.Task[None] | None = None
        self._sizes = OutputSizes(root)
        self._changed: set[str] = set()
        """Commands whose outputs may have grown since they were measured, besides all running ones."""
        self._usage = DiskUsage(0, 0)
        self._usage_read_at: float | None = None
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        clear_removed(root)

    # --- starting -------------------------------------------------------------------------------

    async def start(self, command: CommandSpec) -> Running:
        """Start a command; return when its identity is durable and it has begun. Raises if it never will."""
        command.check()
        await self._admit()
        if command.id in self._starting:
            raise Conflict(f"The task {command.id} is being started.")
        task = asyncio.create_task(self._start(command))
        self._starting[command.id] = task
        task.add_done_callback(lambda _: self._starting.pop(command.id))
        return await asyncio.shield(task)  # a cancelled caller does not interrupt the start

    async def _start(self, command: CommandSpec) -> Running:
        spool = Spool(self.root, command.id)
        try:
            complaint = await asyncio.to_thread(self._launcher.launch, spool, command)
        except OSError as error:
            raise Unavailable(f"The keeper of {spool.id} could not start: {error.strerror}.") from error
        end = spool.end()
        if isinstance(end, NeverStarted):
            raise (Unavailable if end.errno in TEMPORARY else Rejected)(f"The command {end.reason}.")
        claim = spool.claim()
        if claim is None:  # and there will be none: the keeper has closed its report
            raise Unavailable(f"The keeper of {spool.id} could not start: {complaint or 'it was killed'}.")
        self._watch(spool, claim)
        self._meter.begin(spool.id)
        return Running(spool.id, claim.command.pid, claim.began)

    async def _admit(self) -> None:
        """Refuse a new command if a limit is reached."""
        read_at, now = self._usage_read_at, asyncio.get_running_loop().time()
        usage = self._usage if read_at is not None and now - read_at <= USAGE_SECONDS else await self.usage()
        if len(self._live) + len(self._starting) >= self._limits.live:
            raise Unavailable(f"{self._limits.live} commands are running, which is the limit.")
        if usage.free < self._limits.free_bytes:
            raise Unavailable(
                f"Only {usage.free >> 20} MiB are free on the disk; a command needs {self._limits.free_bytes >> 20}.",
                hint="Free some space.",
            )
        if usage.spooled > self._limits.spool_bytes:
            raise Unavailable(
                f"The outputs of all commands take {usage.spooled >> 20} MiB; "
                f"{self._limits.spool_bytes >> 20} are allowed.",
                hint="Remove old tasks.",
            )

    async def attach(self, id: str) -> CommandState:
        """Return the state of a command, and watch it if it runs. A start that is not complete is cancelled."""
        if id in self._starting:
            await asyncio.wait({self._starting[id]})
        if id in self._live:
            watch = self._live[id]
            return Running(id, watch.claim.command.pid, watch.claim.began)
        spool = Spool(self.root, id)
        found = state_of(spool)
        if found is None:  # its keeper is about to record its end
            return await wait_for_outcome(spool, _claimed(spool))
        if isinstance(found, Running):
            self._watch(spool, _claimed(spool))
        return found

    def has(self, id: str) -> bool:
        """Whether there is a directory of a command here."""
        return Spool(self.root, id).path.is_dir()

    def pid(self, id: str) -> int | None:
        """Return the pid that a command has or had, if it was started."""
        claim = Spool(self.root, id).readable_claim()
        return None if claim is None else claim.command.pid

    # --- waiting --------------------------------------------------------------------------------

    def live(self) -> list[str]:
        """The ids of all running commands."""
        return list(self._live)

    async def wait(self, id: str) -> CommandOutcome:
        """Wait until a command has ended; return how."""
        while (watch := self._live.get(id)) is None:
            found = await self.attach(id)
            if not isinstance(found, Running):
                return found
        return await asyncio.shield(watch.outcome)

    async def left_behind(self, id: str) -> tuple[Member, ...]:
        """Return the processes that an ended command left behind, after a moment in which they may end."""
        spool = Spool(self.root, id)
        claim = spool.readable_claim()
        if claim is None or claim.boot != boot_id():
            return ()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEFT_SECONDS):
                for keeper in claim.keepers:  # its keepers stay until no process is left
                    await exit_of(keeper)
        return await members(spool, claim)

    async def take_over(self, id: str, left_by: str, *, oldest: int | None) -> None:
        """Make the processes that a command left behind a command of their own, under this id. Idempotent.

        `oldest` is the pid of the first of them when they were found: how that one ends is how the new command ends.
        """
        spool, origin = Spool(self.root, id), Spool(self.root, left_by)
        claim = origin.readable_claim()
        if spool.readable_claim() is not None or claim is None:
            return
        found = await asyncio.to_thread(find_members, origin, claim) if claim.boot == boot_id() else []
        named = [one.identity for one in found if oldest in (one.pid, None)]
        gone = claim.command if oldest is None else Identity(oldest, claim.command.start)
        await asyncio.to_thread(spool.take_over, origin, claim, named[0] if named else gone)

    def _watch(self, spool: Spool, claim: Claim) -> None:
        loop = asyncio.get_running_loop()
        watch = _Watch(spool, claim, loop.create_future(), None if claim.left_by else open_pidfd(claim.command))
        self._live[spool.id] = watch
        if watch.pidfd is None:
            self._process_ended(watch)
        else:
            loop.add_reader(watch.pidfd, self._process_ended, watch)
        if self._ticker is None:
            self._ticker = asyncio.create_task(self._tick())

    def _process_ended(self, watch: _Watch) -> None:
        if watch.pidfd is not None:
            asyncio.get_running_loop().remove_reader(watch.pidfd)
        task = asyncio.create_task(self._set_outcome(watch))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _set_outcome(self, watch: _Watch) -> None:
        outcome = await wait_for_outcome(watch.spool, watch.claim, pidfd=watch.pidfd)
        self._live.pop(watch.spool.id, None)
        self._changed |= _writers(watch)
        _close_pidfd(watch)
        watch.outcome.set_result(outcome)
        self._launcher.reap()

    # --- output ---------------------------------------------------------------------------------

    def output(self, id: str, stream: Stream = "output") -> OutputFile:
        """Return the output of a command."""
        return Spool(self.root, id).output(stream)

    async def follow(self, id: str, offset: int, *, pause: float | None = None) -> AsyncIterator[Window]:
        """Yield the output from an offset on, as it is written, until the command has ended and all of it was read.

        Of one that was started or attached here; of any other, what there is now. `pause` is the time between two
        looks.
        """
        output = self.output(id)
        while True:
            watch = self._live.get(id)
            window = output.read(offset, 65_536)
            if window.next > offset:
                offset = window.next
                yield window
            elif watch is None:
                return
            else:
                await asyncio.wait({watch.outcome}, timeout=self._timings.follow if pause is None else pause)

    def discard(self, id: str, *, before: int) -> None:
        """Drop what was written between the head and this offset; offsets do not shift."""
        self.output(id).discard(before)
        self._changed.add(id)

    # --- input ----------------------------------------------------------------------------------

    async def write(self, id: str, data: bytes, *, within: float = 5.0) -> int:
        """Write to its input; return how many bytes it took in time."""
        return await stdin.write(self._running(id).spool, data, within=within)

    def written(self, id: str) -> bytes:
        """Return all that was written to its input, if that is of the kind `file`; also after its end."""
        return stdin.written(Spool(self.root, id))

    def close_stdin(self, id: str) -> None:
        """Close its input."""
        watch = self._running(id)
        stdin.close(watch.spool, watch.claim)

    # --- stopping -------------------------------------------------------------------------------

    async def kill(self, id: str, *, grace: float = 5.0) -> KillReport:
        """Kill the whole tree, or what an ended command left behind."""
        spool = Spool(self.root, id)
        claim = spool.readable_claim()
        if claim is None or claim.boot != boot_id():
            return KillReport(0, 0, ())
        return await kill_tree(spool, claim, grace=grace, timings=self._timings)

    async def members(self, id: str) -> tuple[Member, ...]:
        """Return the processes of a command; of an ended one, those that it left behind."""
        spool = Spool(self.root, id)
        claim = spool.readable_claim()
        return await members(spool, claim) if claim is not None and claim.boot == boot_id() else ()

    # --- all commands ---------------------------------------------------------------------------

    async def activities(self) -> dict[str, Activity | NotYet]:
        """Return the activity of each live command over the last minute, or since its start."""
        async with self._activities_lock:
            live = {id: (watch.claim, watch.spool.path) for id, watch in self._live.items()}
            return await asyncio.to_thread(self._meter.read, live)

    async def usage(self) -> DiskUsage:
        """Return the disk usage of the outputs."""
        disk = os.statvfs(self.root)
        changed = self._changed.union(self._starting, *map(_writers, self._live.values()))
        self._changed = set()  # what changes from here on is measured again
        self._usage = DiskUsage(await asyncio.to_thread(self._sizes.total, changed), disk.f_bavail * disk.f_frsize)
        self._usage_read_at = asyncio.get_running_loop().time()
        return self._usage

    async def remove(self, id: str) -> None:
        """Remove the directory of an ended command."""
        if id in self._live or id in self._starting:
            raise Conflict(f"The command {id} is running.")
        spool = Spool(self.root, id)
        if isinstance(state_of(spool) if spool.path.exists() else None, Running):
            raise Conflict(f"The command {id} is running.")
        await asyncio.to_thread(spool.remove)
        self._changed.add(id)

    async def close(self) -> None:
        """Stop watching, and end the keeper server; the commands run on."""
        await asyncio.gather(*self._starting.values(), return_exceptions=True)
        tasks = [*self._ending, *([self._ticker] if self._ticker is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for watch in self._live.values():
            if watch.pidfd is not None:
                asyncio.get_running_loop().remove_reader(watch.pidfd)
            _close_pidfd(watch)
            watch.outcome.cancel()
        self._live.clear()
        if self._own_launcher:
            self._launcher.close()

    async def _tick(self) -> None:
        """Reap keepers, cap outputs that have no keeper, and sample activities now and then."""
        loop = asyncio.get_running_loop()
        look = loop.time()
        while True:
            if self._live and loop.time() >= look:
                look = loop.time() + self._timings.activity
                await self.activities()
            alone = [(output, watch.claim.tail) for watch in self._live.values() for output in _over_its_cap(watch)]
            capped = [await asyncio.to_thread(_cap, output, tail or 0) for output, tail in alone]
            self._launcher.reap()
            await asyncio.sleep(ALONE_SECONDS if any(capped) else TICK_SECONDS)

    def _running(self, id: str) -> _Watch:
        if id not in self._live:
            raise NotFound(f"{id} is not a running command.", hint="`holdfast tasks` lists what is running.")
        return self._live[id]


def _claimed(spool: Spool) -> Claim:
    claim = spool.claim()
    if claim is None:
        raise Unavailable(f"The task {spool.id} was cancelled.")
    return claim


def _writers(watch: _Watch) -> set[str]:
    """Return the commands whose output it writes: left processes share the output of their command."""
    return {watch.spool.id, watch.claim.left_by} - {""}


def _close_pidfd(watch: _Watch) -> None:
    if watch.pidfd is not None:
        os.close(watch.pidfd)
        watch.pidfd = None


def _cap(output: OutputFile, tail: int) -> bool:
    """Drop all but the tail of an output; False if its file system cannot, or something else is in its place."""
    try:
        output.discard(output.size() - tail)
    except (OSError, Corrupt):
        return False
    return True


def _over_its_cap(watch: _Watch) -> list[OutputFile]:
    """Return outputs above their cap whose keepers are dead. Cheap for commands that are within their cap."""
    claim = watch.claim
    if claim.tail is None:
        return []
    outputs = [OutputFile(watch.spool.path / name, claim.head) for name in OUTPUTS]
    above = [output for output in outputs if output.on_disk() > claim.head + 2 * claim.tail]
    return above if above and not any(map(alive, claim.keepers)) else []
