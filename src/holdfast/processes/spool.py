"""The directory of one command: `claim`, `exit`, `output.log`, maybe `stderr.log` and `stdin`; and how to read it.

The output is only ever appended to, and our punching gives back blocks from its head on. So the one hole
that is ours begins exactly at the head; any other is a sparse file that the command made itself, and its
zeros are shown as what they are.

A command runs as the same user and may put a link or a pipe in the place of a file: nothing is read through it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.domain.errors import Corrupt, HoldfastError, NotFound, Unavailable
from holdfast.processes.command import Ended, NeverStarted, Witness, check_id
from holdfast.processes.identity import Identity
from holdfast.processes.keeper import BLOCK, RECORD_BYTES, punch, sync_directory

CANCELLED_CLAIM = "cancelled\n"
REMOVED = ".removed"
OUTPUTS = ("output.log", "stderr.log")
Stream = Literal["output", "stderr"]
WITNESSES: dict[str, Witness] = {"keeper": "keeper", "standby": "standby", "understudy": "standby"}
"""The writer of a record, as the record names it; earlier keepers wrote "understudy"."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The identity of the command's process, written by its keeper before the command began."""

    command: Identity
    keeper: Identity
    standby: Identity
    boot: str
    task: str
    """The mark in the environment: id and nonce."""
    head: int
    tail: int | None
    began: float
    left_by: str = ""
    """The task whose command left these processes behind: `command` is the oldest of them."""

    @property
    def keepers(self) -> tuple[Identity, Identity]:
        """The processes that record its end: the second one if the first is killed."""
        return self.keeper, self.standby


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of an output: first what was dropped, if anything, then the bytes after it."""

    offset: int
    dropped: int
    """How many bytes from the offset on were dropped."""
    data: bytes
    size: int
    """The size of the whole output, with what was dropped."""

    @property
    def next(self) -> int:
        """The offset of the next read."""
        return self.offset + self.dropped + len(self.data)


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file that a command writes or wrote."""

    path: Path
    head: int

    def size(self) -> int:
        """How many bytes were written, with what was dropped."""
        found = self._stat()
        return found.st_size if found is not None else 0

    def on_disk(self) -> int:
        """The bytes that it takes on disk."""
        found = self._stat()
        return found.st_blocks * 512 if found is not None else 0

    @property
    def problem(self) -> str:
        """Why it cannot be read, if something else is in its place."""
        try:
            regular = stat.S_ISREG(self.path.lstat().st_mode)
        except OSError:
            return ""
        return "" if regular else f"{self.path.name} is no longer a regular file, so it is not shown"

    def _stat(self) -> os.stat_result | None:
        try:
            found = self.path.lstat()
        except OSError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def read(self, offset: int, limit: int) -> Window:
        """Return at most `limit` bytes from an offset on."""
        try:
            file = open_regular(self.path, os.O_RDONLY)
        except (FileNotFoundError, Corrupt):
            return Window(offset, 0, b"", 0)
        try:
            while True:
                hole = self._hole(file)
                start = max(offset, hole) if offset >= self.head else offset
                stop = min(start + limit, self.head) if start < self.head < hole else start + limit
                data = os.pread(file, stop - start, start)
                if self._hole(file) == hole or start + len(data) <= self.head:
                    return Window(offset, start - offset, data, os.fstat(file).st_size)
        finally:
            os.close(file)

    def tail(self, lines: int, limit: int = 65_536) -> Window:
        """Return the last lines, from a bounded number of bytes at the end."""
        start = max(0, self.size() - limit)
        window = self.read(start, limit)
        at = len(window.data)
        for _ in range(lines):
            before = window.data.rfind(b"\n", 0, at - 1) if at > 0 else -1
            if before < 0:
                return window
            at = before + 1
        skipped = window.dropped + at
        return Window(window.offset + skipped, 0, window.data[at:], window.size)

    def discard(self, before: int) -> None:
        """Drop the bytes between the head and this offset."""
        end = min(before, self.size()) // BLOCK * BLOCK
        if end > self.head:
            file = open_regular(self.path, os.O_WRONLY)
            try:
                punch(file, self.head, end)
            finally:
                os.close(file)

    def _hole(self, file: int) -> int:
        """Return where the dropped range ends; at most the head if nothing was dropped."""
        if _seek(file, max(self.head - 1, 0), os.SEEK_HOLE) != self.head:
            return 0
        data = _seek(file, self.head, os.SEEK_DATA)
        return data if data is not None else os.fstat(file).st_size


class Spool:
    """One directory, by the id of its task."""

    def __init__(self, root: Path, id: str) -> None:
        self.id = check_id(id)
        self.root = root
        self.path = root / id

    @property
    def stdin(self) -> Path:
        """The FIFO, if the command has one."""
        return self.path / "stdin"

    def output(self, stream: Stream = "output") -> OutputFile:
        """The output of the command."""
        claim = self.readable_claim()
        head = claim.head if claim is not None else 0
        return OutputFile(self.path / f"{stream}.log", head)

    def cancel(self) -> bool:
        """Claim the directory in place of the keeper; return True if nothing ran in it, and nothing will.

        That is so if the keeper had not claimed it, or ended before it could let the command begin.
        """
        if (text := self._text("claim")) is not None:
            return text == CANCELLED_CLAIM or self._gave_up()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = self.path / "claim.cancel"
            new.unlink(missing_ok=True)
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            os.write(file, CANCELLED_CLAIM.encode())
            os.close(file)
            os.link(new, self.path / "claim")
            new.unlink()
            sync_directory(str(self.path))
            sync_directory(str(self.root))
        except FileExistsError:
            return self._text("claim") == CANCELLED_CLAIM or self._gave_up()
        except OSError as error:
            raise Unavailable(f"The start of {self.id} cannot be cancelled: {error.strerror}.") from error
        return True

    def _gave_up(self) -> bool:
        try:
            end = self.end()
        except Corrupt:
            return False
        return isinstance(end, NeverStarted) and end.cancelled

    def claim(self) -> Claim | None:
        """Read the claim; `None` if there is none, or if the start was cancelled."""
        text = self._text("claim")
        if text in (None, CANCELLED_CLAIM):
            return None
        try:
            lines = dict(line.split(" ", 1) for line in text.splitlines())
            tail = int(lines["tail"])
            return Claim(
                command=_identity(lines["pid"]),
                keeper=_identity(lines["keeper"]),
                standby=_identity(lines.get("standby") or lines["understudy"]),
                boot=lines["boot"],
                task=lines["task"],
                head=int(lines["head"]),
                tail=tail if tail >= 0 else None,
                began=float(lines["began"]),
                left_by=lines.get("left", ""),
            )
        except (KeyError, ValueError) as error:
            raise Corrupt(f"The claim of {self.id} cannot be read: {error}.") from error

    def take_over(self, origin: Spool, claim: Claim, oldest: Identity) -> None:
        """Claim the directory for processes that a command left behind; they share its output."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in OUTPUTS:
            with suppress(FileNotFoundError, FileExistsError):
                os.link(origin.path / name, self.path / name, follow_symlinks=False)
        lines = (
            f"pid {oldest.pid} {oldest.start}",
            f"keeper {claim.keeper.pid} {claim.keeper.start}",
            f"standby {claim.standby.pid} {claim.standby.start}",
            f"boot {claim.boot}",
            f"task {claim.task}",
            f"head {claim.head}",
            f"tail {-1 if claim.tail is None else claim.tail}",
            f"began {time.time():.6f}",
            f"left {origin.id}",
        )
        new = self.path / "claim.new"
        new.unlink(missing_ok=True)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        os.write(file, "\n".join(lines).encode() + b"\n")
        os.fsync(file)
        os.close(file)
        new.rename(self.path / "claim")
        sync_directory(str(self.path))
        sync_directory(str(self.root))

    def end_of_left(self, claim: Claim) -> Ended | None:
        """Return how the oldest process that the command left behind ended, or else the last one, by its keeper."""
        try:
            text = Spool(self.root, claim.left_by)._text("left", 2 * BLOCK) or ""
            lines = [words for line in text.splitlines() if len(words := line.split()) == 3]
            if not lines:
                return None
            _, status, at = next((one for one in lines if one[0] == str(claim.command.pid)), lines[-1])
            return Ended(self.id, _number(self.id, status), "keeper", _time(self.id, at))
        except HoldfastError:
            return None

    def readable_claim(self) -> Claim | None:
        """Read the claim; `None` also if it is damaged."""
        try:
            return self.claim()
        except Corrupt:
            return None

    def end(self) -> Ended | NeverStarted | None:
        """Read how it ended from the record; `None` while there is none.

        A record counts when it is whole, also in the place that was kept for it: its keepers may have been
        killed before they could give it its name. The name is read twice, since it may come in between.
        """
        names = ("exit", "exit.pre", "exit")
        return next((end for name in names if (end := self._parse(self._text(name))) is not None), None)

    def remove(self) -> None:
        """Remove the directory: first its name, in one step, then what is in it."""
        gone = self.root / f"{REMOVED}.{self.id}"
        if gone.exists():
            _clear(gone)
        try:
            self.path.rename(gone)
        except FileNotFoundError:
            raise NotFound(f"There is no output of {self.id}.") from None
        sync_directory(str(self.root))
        _clear(gone)

    def _parse(self, text: str | None) -> Ended | NeverStarted | None:
        match (text or "").strip().split(" ", 3):
            case ["ended", status, at, by] if by in WITNESSES:
                return Ended(self.id, _number(self.id, status), WITNESSES[by], _time(self.id, at))
            case ["never", number, *reason]:
                code, why = _number(self.id, number), f"could not start: {' '.join(reason)}"
                return NeverStarted(self.id, why, code, cancelled=code == errno.ECANCELED)
            case _:
                return None

    def _text(self, name: str, limit: int = 2 * RECORD_BYTES) -> str | None:
        try:
            file = open_regular(self.path / name, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return os.read(file, limit).decode("utf-8", "replace")
        finally:
            os.close(file)


def open_regular(path: Path, flags: int) -> int:
    """Open a regular file of a command; a link or a pipe in its place is refused, without blocking."""
    try:
        file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise Corrupt(f"{path.name} of {path.parent.name} is no regular file.") from error
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Corrupt(f"{path.name} of {path.parent.name} is no regular file.")
    return file


def _number(id: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Corrupt(f"The record of the end of {id} is damaged: {text!r} is no number.") from None


def _time(id: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e11:
        raise Corrupt(f"The record of the end of {id} is damaged: {text!r} is no time.")
    return found


def _seek(file: int, offset: int, whence: int) -> int | None:
    """Return where the next hole or the next data begins; `None` beyond the end."""
    try:
        return os.lseek(file, offset, whence)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None


def clear_removed(root: Path) -> None:
    """Finish removals that were interrupted."""
    for path in root.glob(f"{REMOVED}.*"):
        _clear(path)


def _clear(path: Path) -> None:
    """Delete all files. A keeper may rename its record meanwhile, so files may vanish."""
    try:
        shutil.rmtree(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
            raise
        shutil.rmtree(path)


def _identity(text: str) -> Identity:
    pid, start = text.split(" ")
    return Identity(int(pid), int(start))
