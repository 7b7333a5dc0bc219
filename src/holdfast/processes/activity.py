"""What a live command is doing, in four words: working, serving, waiting, idle; with the evidence.

A sample sums up a whole tree; all trees are sampled from one look at the process table and the sockets.
Rates need two samples, and before the second one nothing is claimed. Classification is a pure function.

It is advice: a job that waits for a remote answer looks like `waiting on net` however long it takes, and
work on a graphics card shows no CPU.
"""

from __future__ import annotations

import os
import platform
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.processes.proc import Process, Table, table, tree
from holdfast.processes.spool import OUTPUTS, Claim

Word = Literal["working", "serving", "waiting", "idle"]
Detail = Literal["", "in use", "not in use", "on input", "on net"]

CPU_WORKING = 0.02
CPU_SERVING = 0.04
"""A server looks at its files and its clock now and then: that alone is not use."""
IO_WORKING = 64 * 1024
TICKS = os.sysconf("SC_CLK_TCK")
READ_CALL = {"x86_64": "0", "aarch64": "63"}.get(platform.machine(), "")
ESTABLISHED, LISTEN = "01", "0A"


@dataclass(frozen=True, slots=True)
class Sample:
    """A tree at one moment."""

    at: float
    """Seconds since the boot, with sleep: the wall clock may jump."""
    processes: frozenset[int]
    cpu: float
    """Seconds."""
    io: int
    output: int
    ports: tuple[int, ...] = ()
    """Listened on."""
    uses: int = 0
    """Connections to those ports, also those that closed within the last minute."""
    peers: int = 0
    """Connections of its own."""
    on_input: bool = False
    memory: int = 0
    """Resident bytes of all of them; what they share is counted for each."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen, and over how long."""

    seconds: float
    cpu: float
    """Of one core: 1.0 is all of it."""
    io: float
    """Bytes a second, read and written."""
    output: int
    """Bytes of output in this time."""
    processes: int
    changed: bool
    """Whether processes came or went."""
    ports: tuple[int, ...]
    uses: int
    peers: int
    memory: int = 0
    """Resident bytes at the end."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a command did between two samples."""

    word: Word
    detail: Detail
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class NotYet:
    """It was seen once, and a rate needs two samples."""

    sample: Sample


def classify(before: Sample, now: Sample) -> Activity:
    """From two samples to a word."""
    seconds = max(now.at - before.at, 1e-3)
    evidence = Evidence(
        seconds=seconds,
        cpu=max(0.0, now.cpu - before.cpu) / seconds,
        io=max(0, now.io - before.io) / seconds,
        output=now.output - before.output,
        processes=len(now.processes),
        changed=now.processes != before.processes,
        ports=now.ports,
        uses=now.uses,
        peers=now.peers,
        memory=now.memory,
    )
    word, detail = _word(evidence, on_input=now.on_input)
    return Activity(word, detail, evidence)


def _word(seen: Evidence, *, on_input: bool) -> tuple[Word, Detail]:
    if seen.ports:
        used = seen.uses or seen.cpu >= CPU_SERVING or seen.io >= IO_WORKING
        return "serving", "in use" if used else "not in use"
    if seen.output or seen.changed or seen.cpu >= CPU_WORKING or seen.io >= IO_WORKING:
        return "working", ""
    if seen.peers:
        return "waiting", "on net"
    if on_input:
        return "waiting", "on input"
    return "idle", ""


class Meter:
    """Keeps the last sample of each command."""

    def __init__(self) -> None:
        self._last: dict[str, Sample] = {}

    def read(self, live: Mapping[str, tuple[Claim, Path]]) -> dict[str, Activity | NotYet]:
        """Sample all of them from one look, and compare with the look before."""
        everybody, sockets = table(), Sockets.look()
        samples = {id: _sample(claim, path, everybody, sockets) for id, (claim, path) in live.items()}
        found: dict[str, Activity | NotYet] = {}
        for id, now in samples.items():
            before = self._last.get(id)
            found[id] = classify(before, now) if before is not None else NotYet(now)
        self._last = samples
        return found


@dataclass(frozen=True, slots=True)
class Sockets:
    """All TCP sockets of the machine, by inode and by port."""

    listening: Mapping[str, int]
    """Inode to port."""
    established: frozenset[str]
    uses: Mapping[int, int]
    """Connections to a local port."""

    @classmethod
    def look(cls) -> Sockets:
        """Read them once."""
        listening, established, uses = dict[str, int](), set[str](), dict[int, int]()
        for row in _rows("/proc/net/tcp") + _rows("/proc/net/tcp6"):
            (here, port), (there, remote) = (_address(row[at]) for at in (1, 2))
            if row[3] == LISTEN:
                listening[row[9]] = port
                continue
            if row[3] == ESTABLISHED:
                established.add(row[9])
            ends = {port, remote} if here == there else {port}
            for end in ends:
                uses[end] = uses.get(end, 0) + 1
        return cls(listening, frozenset(established), uses)


def _sample(claim: Claim, path: Path, everybody: Table, sockets: Sockets) -> Sample:
    members = tree(everybody, claim.command, claim.keepers)
    inodes = set[str]().union(*(_socket_inodes(one.pid) for one in members))
    ports = {sockets.listening[inode] for inode in inodes if inode in sockets.listening}
    return Sample(
        at=time.clock_gettime(time.CLOCK_BOOTTIME),
        processes=frozenset(one.pid for one in members),
        cpu=sum(one.ticks for one in members) / TICKS,
        io=sum(_io(one.pid) for one in members),
        output=sum(_size(path / name) for name in OUTPUTS),
        ports=tuple(sorted(ports)),
        uses=sum(sockets.uses.get(port, 0) for port in ports),
        peers=len(inodes & sockets.established),
        on_input=any(_reads_input(one) for one in members),
        memory=sum(one.memory for one in members),
    )


def _rows(path: str) -> list[list[str]]:
    try:
        with open(path) as file:
            return [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []


def _address(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return address, int(port, 16)


def _socket_inodes(pid: int) -> set[str]:
    found = set[str]()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            target = os.readlink(entry.path)
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        return found
    return found


def _io(pid: int) -> int:
    """Bytes through read and write, whether or not a disk was involved."""
    try:
        with open(f"/proc/{pid}/io") as file:
            return sum(int(line.split()[1]) for line in file.readlines()[:2])
    except (OSError, IndexError, ValueError):
        return 0


def _reads_input(one: Process) -> bool:
    """Whether it sleeps in a read of its stdin; where others may not see the call, whether it waits for a pipe."""
    if one.state != "S":
        return False
    try:
        words = _text(f"/proc/{one.pid}/syscall").split()
    except OSError:
        return _waits_for_its_pipe(one.pid)
    return words[:2] == [READ_CALL, "0x0"]


def _waits_for_its_pipe(pid: int) -> bool:
    try:
        return _text(f"/proc/{pid}/wchan").endswith("pipe_read") and stat.S_ISFIFO(os.stat(f"/proc/{pid}/fd/0").st_mode)
    except OSError:
        return False


def _text(path: str) -> str:
    with open(path) as file:
        return file.read()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
