"""Killing a whole tree of processes: SIGTERM, wait, SIGSTOP, then SIGKILL; and a report of survivors.

Members are the descendants of the command and of its keepers (which inherit its orphans), and every process that
carries its mark: the nonce in its environment, or its output as stdout or stderr. Those two find what the
tree does not when the keepers are dead. Stopping first means that nobody can fork while we look again. The
keepers are never signalled: they have an end to record.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from dataclasses import dataclass

from holdfast.processes.command import TASK_VARIABLE
from holdfast.processes.identity import Identity, Process, descendants, marked, send, table, tree
from holdfast.processes.spool import Claim, Spool
from holdfast.timings import ProcessTimings

LOOK_SECONDS = 0.02
EMPTY_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a command."""

    pid: int
    name: str
    state: str
    """One letter, as the kernel has it."""


@dataclass(frozen=True, slots=True)
class KillReport:
    """What was done to a tree."""

    asked: int
    """How many got SIGTERM."""
    forced: int
    """How many got SIGKILL, since they still ran after the grace."""
    survivors: tuple[Member, ...]
    """Processes that still run."""


async def kill_tree(spool: Spool, claim: Claim, *, grace: float, timings: ProcessTimings) -> KillReport:
    """Send SIGTERM to all, unless there is no grace, then SIGKILL until none is found twice in a row."""
    loop = asyncio.get_running_loop()
    found = await asyncio.to_thread(find_members, spool, claim)
    asked = sum(_terminate(one) for one in found) if grace else 0
    patience = loop.time() + grace
    while found and loop.time() < patience:
        await asyncio.sleep(LOOK_SECONDS)
        found = await asyncio.to_thread(find_members, spool, claim)
    forced = await _force(spool, claim, timings)
    return KillReport(asked, forced, await members(spool, claim))


async def members(spool: Spool, claim: Claim) -> tuple[Member, ...]:
    """Return the processes that belong to a command now."""
    found = await asyncio.to_thread(find_members, spool, claim)
    return tuple(Member(one.pid, one.name, one.state) for one in found)


async def _force(spool: Spool, claim: Claim, timings: ProcessTimings) -> int:
    loop = asyncio.get_running_loop()
    stopped, killed = set[Identity](), set[Identity]()
    began, empty, time_is_left = loop.time(), 0, True
    while empty < EMPTY_ROUNDS and time_is_left:
        found = await asyncio.to_thread(find_members, spool, claim)
        empty = 0 if found else empty + 1
        new = [one.identity for one in found if one.identity not in stopped]
        for identity in new:
            send(identity, signal.SIGSTOP)
        stopped.update(new)
        time_is_left = loop.time() < began + timings.force
        if new and loop.time() < began + timings.freeze:
            continue
        for one in found:
            if send(one.identity, signal.SIGKILL):
                killed.add(one.identity)
        await asyncio.sleep(LOOK_SECONDS / 4)
    return len(killed)


def _terminate(one: Process) -> bool:
    """Send SIGTERM, and SIGCONT to a stopped process, which would not handle it."""
    asked = send(one.identity, signal.SIGTERM)
    if asked and one.state == "T":
        send(one.identity, signal.SIGCONT)
    return asked


def find_members(spool: Spool, claim: Claim) -> list[Process]:
    """Return the tree and all processes with the mark, with their descendants, the oldest first."""
    everybody = table()
    found = {one.pid: one for one in tree(everybody, claim.command, claim.keepers)}
    mark = f"{TASK_VARIABLE}={claim.task}".encode()
    output = _inode(spool)
    ours = {os.getpid(), *(keeper.pid for keeper in claim.keepers)}
    found.pop(os.getpid(), None)  # a gateway that was started by a command does not kill itself
    others = [one for pid, one in everybody.items() if pid not in found and pid not in ours and not one.dead]
    strays = [one for one in others if one.start >= claim.command.start and marked(one.pid, mark, output)]
    found.update((one.pid, one) for one in strays)
    found.update((one.pid, one) for one in descendants(everybody, [one.identity for one in strays]))
    return sorted(found.values(), key=lambda one: (one.start, one.pid))


def _inode(spool: Spool) -> tuple[int, int] | None:
    """Return the inode of its output; `None` if that is gone, or was replaced by something else."""
    try:
        found = (spool.path / "output.log").lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
