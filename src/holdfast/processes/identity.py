"""Identities of processes and the process table, as `/proc` and pidfds show them.

A pid alone does not identify a process: it is used again. A pid with its start ticks identifies one process of one
boot, and a signal goes through a pidfd whose process was checked after it was opened. A zombie counts as dead.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from holdfast.domain.errors import Unavailable

PIDFD_GET_INFO = 0xC040FF0B
PIDFD_INFO_EXIT = 1 << 3
PIDFD_INFO_BYTES = 64
DEAD = "ZX"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Identity:
    """One process of this boot."""

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class Process:
    """A line of the process table."""

    pid: int
    name: str
    state: str
    parent: int
    start: int
    ticks: int
    """CPU time of itself and of the children that it has reaped."""
    exit_code: int
    """As `wait` would give it; only a zombie has one."""
    memory: int = 0
    """Resident bytes."""

    @property
    def identity(self) -> Identity:
        """Its pid and start ticks."""
        return Identity(self.pid, self.start)

    @property
    def dead(self) -> bool:
        """Whether it is a zombie."""
        return self.state in DEAD


ProcessTable = dict[int, Process]


def require_proc() -> None:
    """Raise an error that explains that this needs Linux."""
    if not Path("/proc/self/stat").exists():
        raise Unavailable("Commands are kept with the help of /proc, which this system does not have.")


def process(pid: int) -> Process | None:
    """Return the process with this pid, alive or zombie; `None` if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    end = text.rindex(b")")
    fields = text[end + 2 :].split()
    return Process(
        pid=pid,
        name=text[text.index(b"(") + 1 : end].decode("utf-8", "replace"),
        state=fields[0].decode(),
        parent=int(fields[1]),
        start=int(fields[19]),
        ticks=sum(map(int, fields[11:15])),
        exit_code=int(fields[49]) if len(fields) > 49 else 0,
        memory=int(fields[21]) * PAGE_BYTES,
    )


def table() -> ProcessTable:
    """Read the whole process table."""
    found = (process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {one.pid: one for one in found if one is not None}


def alive(identity: Identity) -> bool:
    """Return whether exactly this process lives."""
    found = process(identity.pid)
    return found is not None and found.start == identity.start and not found.dead


def descendants(everybody: ProcessTable, roots: Iterable[Identity]) -> list[Process]:
    """Return the living descendants of these processes, without themselves."""
    children: dict[int, list[Process]] = {}
    for one in everybody.values():
        children.setdefault(one.parent, []).append(one)
    known = {root.pid for root in roots if (at := everybody.get(root.pid)) is not None and at.start == root.start}
    front, found = list(known), list[Process]()
    while front:
        for child in children.get(front.pop(), ()):
            if child.pid not in known:
                known.add(child.pid)
                front.append(child.pid)
                found.append(child)
    return [one for one in found if not one.dead]


def tree(everybody: ProcessTable, command: Identity, keepers: tuple[Identity, ...]) -> list[Process]:
    """Return a command and its descendants, with orphans, which are children of a keeper, and without the keepers."""
    found = [one for one in descendants(everybody, (command, *keepers)) if one.identity not in keepers]
    first = everybody.get(command.pid)
    if first is not None and first.identity == command and not first.dead:
        found = [first, *(one for one in found if one.pid != command.pid)]
    return found


def open_pidfd(identity: Identity) -> int | None:
    """Open a descriptor of exactly this process; `None` if it is gone or its pid was reused."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except OSError:
        return None
    found = process(identity.pid)
    if found is None or found.identity != identity:
        os.close(descriptor)
        return None
    return descriptor


async def exit_of(identity: Identity) -> None:
    """Wait until exactly this process has ended."""
    descriptor = open_pidfd(identity)
    if descriptor is None:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def send(identity: Identity, number: int) -> bool:
    """Signal exactly this process; return False if it is gone, or may not be signalled."""
    descriptor = open_pidfd(identity)
    if descriptor is None:
        return False
    try:
        signal.pidfd_send_signal(descriptor, signal.Signals(number))
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(descriptor)
    return True


def marked(pid: int, task: bytes, output: tuple[int, int] | None) -> bool:
    """Return whether a process has the mark of a command in its environment, or writes to its output."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            if task in file.read().split(b"\0"):
                return True
    except OSError:
        return False
    return output is not None and output in (_opened(pid, 1), _opened(pid, 2))


def _opened(pid: int, descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.stat(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return None
    return found.st_dev, found.st_ino


def zombie_status(identity: Identity) -> int | None:
    """Return how a process ended that is a zombie now; `None` if it is none."""
    found = process(identity.pid)
    if found is None or found.start != identity.start or not found.dead:
        return None
    return os.waitstatus_to_exitcode(found.exit_code)


def pidfd_status(descriptor: int) -> int | None:
    """Return how a process ended, by a descriptor that was opened while it lived (Linux 6.15 and later)."""
    request = PIDFD_INFO_EXIT.to_bytes(8, sys.byteorder).ljust(PIDFD_INFO_BYTES, b"\0")
    try:
        answer = fcntl.ioctl(descriptor, PIDFD_GET_INFO, request)
    except OSError:
        return None
    if not int.from_bytes(answer[:8], sys.byteorder) & PIDFD_INFO_EXIT:
        return None
    return os.waitstatus_to_exitcode(int.from_bytes(answer[60:64], sys.byteorder, signed=True))
