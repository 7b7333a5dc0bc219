"""The activity of a live command, one of working, serving, waiting and idle, with the evidence.

A sample sums up a whole tree of processes; all trees are sampled from one read of the process table and the sockets.
Work may come in bursts, so a sample is compared with one that is at least a minute old, or with the start. Nothing is
called idle before that much was seen, or before a command has had a few seconds to do something; then it is unknown.
Classification is a pure function.

It is advice: a job that waits for a remote answer looks like `waiting on net` however long it takes, and
work on a graphics card shows no CPU. tests/processes/activity_cases.py holds real commands, and the limits.
"""

from __future__ import annotations

import os
import platform
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from holdfast.processes.identity import Process, ProcessTable, table, tree
from holdfast.processes.spool import OUTPUTS, Claim
from holdfast.timings import USUAL, ProcessTimings

ActivityWord = Literal["working", "serving", "waiting", "idle"]
Detail = Literal["", "in use", "not in use", "on input", "on net"]

CPU_WORKING = 0.02
CPU_SERVING = 0.04
"""A server does some periodic work of its own: less than this is not use."""
IO_WORKING = 64 * 1024
WRITTEN_WORKING = 4 * 1024
"""Written bytes a second that count as work: fewer than read ones, so that a slow download counts."""
SPACING = 12
"""How many samples of a window are kept."""
TICKS = os.sysconf("SC_CLK_TCK")
INPUT_CALLS = {
    "x86_64": (["0", "0x0"], ["23", "0x1"], ["270", "0x1"]),
    "aarch64": (["63", "0x0"], ["72", "0x1"]),
}.get(platform.machine(), ())
"""A read of descriptor 0, or a `select` that looks at no other: number and first argument."""
ESTABLISHED, LISTEN = "01", "0A"
UNIX_LISTENS, UNIX_CONNECTED = "00010000", "03"
MEMORY_DEVICES = 1
"""The major number of /dev/null and its like; any other character device as input is a terminal."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a tree of processes at one moment."""

    at: float
    """Seconds since the boot, with sleep: the wall clock may jump."""
    processes: frozenset[int]
    cpu: float
    """Seconds."""
    io: int
    """Bytes, read and written."""
    output: int
    written: int = 0
    ports: tuple[int, ...] = ()
    """TCP ports that are listened on."""
    unix_listeners: int = 0
    """Unix sockets that are listened on. Jobs have some for their own processes too, so work counts more."""
    uses: int = 0
    """Connections to those ports, also those that closed within the last minute; and those to the Unix sockets."""
    peers: int = 0
    """Connections that it opened itself."""
    on_input: bool = False
    memory: int = 0
    """Resident bytes of all of them; what they share is counted for each."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was measured, and over how long."""

    seconds: float
    cpu: float
    """Of one core: 1.0 is all of it."""
    io: float
    """Bytes a second, read and written."""
    written: float
    output: int
    """Bytes of output in this time."""
    processes: int
    ports: tuple[int, ...]
    unix_listeners: int
    uses: int
    peers: int
    memory: int = 0
    """Resident bytes at the end."""
    pids: tuple[int, ...] = ()
    """The pids, the lowest first."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a command did between two samples."""

    word: ActivityWord
    detail: Detail
    evidence: Evidence
    quiet_seconds: float = 0.0
    """For how long it has been idle and unused."""
    quiet_looks: int = 0
    """How many samples in a row, seconds apart, found it so."""

    @property
    def quiet(self) -> bool:
        """Whether it is idle and unused."""
        return self.word in ("idle", "waiting") or self.detail == "not in use"


@dataclass(frozen=True, slots=True)
class NotYet:
    """The command was not watched for long enough."""

    sample: Sample
    seconds: float = 0.0
    """How long it was watched without any activity."""


def classify(before: Sample, now: Sample) -> Activity:
    """Return the activity between two samples."""
    seconds = max(now.at - before.at, 1e-3)
    evidence = Evidence(
        seconds=seconds,
        cpu=max(0.0, now.cpu - before.cpu) / seconds,
        io=max(0, now.io - before.io) / seconds,
        written=max(0, now.written - before.written) / seconds,
        output=now.output - before.output,
        processes=len(now.processes),
        ports=now.ports,
        unix_listeners=now.unix_listeners,
        uses=now.uses,
        peers=now.peers,
        memory=now.memory,
        pids=tuple(sorted(now.processes)),
    )
    word, detail = _word(evidence, on_input=now.on_input)
    return Activity(word, detail, evidence)


def _word(seen: Evidence, *, on_input: bool) -> tuple[ActivityWord, Detail]:
    if seen.ports:
        used = seen.uses or seen.cpu >= CPU_SERVING or seen.io >= IO_WORKING
        return "serving", "in use" if used else "not in use"
    moved = seen.io >= IO_WORKING or seen.written >= WRITTEN_WORKING
    if seen.output or moved or seen.cpu >= CPU_WORKING:
        return "working", ""
    if seen.unix_listeners:
        return "serving", "in use" if seen.uses else "not in use"
    if seen.peers:
        return "waiting", "on net"
    if on_input:
        return "waiting", "on input"
    return "idle", ""


@dataclass(slots=True)
class _Track:
    """The samples of one command, the oldest first, and since when it is quiet."""

    samples: list[Sample]
    from_start: bool
    """Whether the first sample is from the start of the command."""
    quiet_since: float = 0.0
    quiet_looks: int = 0
    counted_at: float = 0.0


class ActivityMeter:
    """Keeps the samples of the last minute of each command."""

    def __init__(self, timings: ProcessTimings = USUAL.processes) -> None:
        self._window, self._recent = timings.window, timings.recent
        self._tracks: dict[str, _Track] = {}

    def begin(self, id: str) -> None:
        """Take the first sample of a command that begins now."""
        start = Sample(at=_now(), processes=frozenset(), cpu=0.0, io=0, output=0)
        self._tracks[id] = _Track([start], from_start=True)

    def read(self, live: Mapping[str, tuple[Claim, Path]]) -> dict[str, Activity | NotYet]:
        """Sample all commands at once, and return their activities."""
        everybody, sockets = table(), Sockets.look()
        samples = {id: _sample(claim, path, everybody, sockets) for id, (claim, path) in live.items()}
        for id in self._tracks.keys() - live.keys():
            del self._tracks[id]
        return {id: self._judge(self._tracks.setdefault(id, _Track([], False)), now) for id, now in samples.items()}

    def _judge(self, track: _Track, now: Sample) -> Activity | NotYet:
        before = track.samples
        old = [one for one in before if now.at - one.at >= self._window]
        if old:  # the window begins with the newest of them
            del before[: len(old) - 1]
            track.from_start = False
        found = over_window(before, now, whole=bool(old) or track.from_start, recent_seconds=self._recent)
        if not before or now.at - before[-1].at >= self._window / SPACING:
            before.append(now)
        return self._count(track, found, now)

    def _count(self, track: _Track, found: Activity | NotYet, now: Sample) -> Activity | NotYet:
        if isinstance(found, NotYet) or not found.quiet:
            track.quiet_looks = 0
            return found
        if not track.quiet_looks:
            track.quiet_since = now.at - found.evidence.seconds
        if not track.quiet_looks or now.at - track.counted_at >= self._window / SPACING:
            track.quiet_looks, track.counted_at = track.quiet_looks + 1, now.at
        return replace(found, quiet_seconds=now.at - track.quiet_since, quiet_looks=track.quiet_looks)


def over_window(
    before: Sequence[Sample], now: Sample, *, whole: bool, recent_seconds: float = USUAL.processes.recent
) -> Activity | NotYet:
    """Return the activity over a window. `whole`: it is long enough, or goes back to the start of the command."""
    if not before:
        return classify(now, now) if now.ports else NotYet(now)
    seconds = now.at - before[0].at
    uses = max(one.uses for one in (*before[1:], now))
    found = classify(before[0], replace(now, uses=uses))
    recent = [one for one in before if now.at - one.at >= recent_seconds]
    if recent:
        lately = classify(recent[-1], replace(now, uses=uses))
        if lately.word == "serving" or (now.on_input and lately.word == "waiting"):
            return lately  # what it read at its start is not use, and a prompt is waiting
    loading = found.word == "working" and not found.evidence.output  # a program reads a lot to begin
    if (found.word == "idle" and not whole) or (seconds < recent_seconds and (loading or found.word == "idle")):
        return NotYet(now, seconds)
    return found


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Sockets:
    """All TCP and unix sockets of the machine, by inode, port and path."""

    listening: Mapping[str, int]
    """Inode to port."""
    established: frozenset[str]
    uses: Mapping[int, int]
    """Connections to a local port."""
    unix_listeners: Mapping[str, str]
    """Inode to path, of unix sockets that are listened on."""
    callers: Mapping[str, str]
    """Inode to path, of unix sockets that were accepted there."""

    @classmethod
    def look(cls) -> Sockets:
        """Read the sockets of the machine."""
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
        named = [row for row in _rows("/proc/net/unix") if len(row) > 7]
        unix_listeners = {row[6]: row[7] for row in named if row[3] == UNIX_LISTENS}
        callers = {row[6]: row[7] for row in named if row[3] != UNIX_LISTENS and row[5] == UNIX_CONNECTED}
        return cls(listening, frozenset(established), uses, unix_listeners, callers)


def _sample(claim: Claim, path: Path, everybody: ProcessTable, sockets: Sockets) -> Sample:
    members = tree(everybody, claim.command, claim.keepers)
    inodes = set[str]().union(*(_socket_inodes(one.pid) for one in members))
    ports = {sockets.listening[inode] for inode in inodes if inode in sockets.listening}
    unix_listeners = {sockets.unix_listeners[inode] for inode in inodes if inode in sockets.unix_listeners}
    read, written = map(sum, zip(*(_io(one.pid) for one in members), strict=True)) if members else (0, 0)
    return Sample(
        at=_now(),
        processes=frozenset(one.pid for one in members),
        cpu=sum(one.ticks for one in members) / TICKS,
        io=read + written,
        output=sum(_size(path / name) for name in OUTPUTS),
        written=written,
        ports=tuple(sorted(ports)),
        unix_listeners=len(unix_listeners),
        uses=sum(sockets.uses.get(port, 0) for port in ports)
        + sum(sockets.callers.get(inode) in unix_listeners for inode in inodes),
        peers=len(inodes & sockets.established),
        on_input=any(_reads_input(one, path / "stdin") for one in members),
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
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return found
    for name in names:
        with suppress(OSError):  # closed meanwhile: a busy server does that all the time
            target = os.readlink(f"/proc/{pid}/fd/{name}")
            if target.startswith("socket:["):
                found.add(target[8:-1])
    return found


def _io(pid: int) -> tuple[int, int]:
    """Return the bytes read and written, on disk or not, with those of reaped children."""
    try:
        with open(f"/proc/{pid}/io") as file:
            return int(file.readline().split()[1]), int(file.readline().split()[1])
    except (OSError, IndexError, ValueError):
        return 0, 0


def _reads_input(one: Process, stdin: Path) -> bool:
    """Return whether it sleeps in a read of our input; where the call is not visible, in a read of some pipe."""
    if one.state != "S":
        return False
    try:
        reads = _text(f"/proc/{one.pid}/syscall").split()[:2] in INPUT_CALLS
    except OSError:
        reads = _waits_for_a_pipe(one.pid)
    return reads and _is_ours(f"/proc/{one.pid}/fd/0", stdin)


def _waits_for_a_pipe(pid: int) -> bool:
    try:
        return _text(f"/proc/{pid}/wchan").endswith("pipe_read")
    except OSError:
        return False


def _is_ours(descriptor: str, stdin: Path) -> bool:
    """Return whether this is the input that people can write to, not a pipe between two of its processes."""
    try:
        found = os.stat(descriptor)
        if stat.S_ISCHR(found.st_mode):
            return os.major(found.st_rdev) != MEMORY_DEVICES
        return os.path.samestat(found, os.stat(stdin))
    except OSError:
        return False


def _text(path: str) -> str:
    with open(path) as file:
        return file.read()


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
