"""`read`, a window of a text file, and `list`, a directory. They change nothing.

A file is read as far as the window reaches and is never in memory as a whole. What is left out is said
in brackets before the text; the text itself is given as it is, so that it can be copied into an `edit`.
"""

from __future__ import annotations

import codecs
import os
import stat
import threading
from dataclasses import dataclass, field
from heapq import nsmallest
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from holdfast.runtime.tools.context import ToolContext, ToolFailed, printable
from holdfast.runtime.tools.tool import OUTPUT_LIMIT, Tool, ToolOutput

LINES = 2_000
WINDOW_CHARS = OUTPUT_LIMIT - 2_000
LINE_CHARS = 20_000
CHUNK = 1 << 20
HEAD = 8_192
"""What is read of a file to see whether it is text; a thread takes longer than the whole of a file of this size."""
COUNTED_BYTES = 256 * CHUNK
ENTRIES = 1_000
SEEN_ENTRIES = 200_000
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class ReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file, and which of its lines."""

    path: Annotated[str, msgspec.Meta(description="The file, relative to the working directory.")]
    offset: Annotated[int, msgspec.Meta(ge=1, description="The first line to read; 1 is the first.")] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, description=f"How many lines to read; {LINES} if not given.")] | None = (
        None
    )


class ListFilesArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A directory."""

    path: Annotated[str, msgspec.Meta(description="The directory, relative to the working directory.")] = "."


@dataclass(slots=True)
class LineWindow:
    """The lines that were read, and what is to be said about the rest."""

    first: int
    lines: list[str] = field(default_factory=list)
    total: int = 0
    counted: bool = True
    crlf: bool = False
    remarks: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The lines, after what has to be known about them."""
        last = self.first + len(self.lines) - 1
        said = list(self.remarks)
        if self.crlf:
            said.append("lines end with CRLF")
        if last < self.total or not self.counted:
            said.insert(0, f"continue with offset={last + 1}")
        if said or self.first > 1:
            total = f"{self.total}" if self.counted else f"more than {self.total}"
            said.insert(0, f"lines {self.first}-{last} of {total}")
        head = f"[{'; '.join(said)}]\n" if said else ""
        return head + "".join(self.lines) if self.total else "[the file is empty]"


async def _read(context: ToolContext, arguments: ReadArguments) -> ToolOutput:
    first, count = arguments.offset or 1, arguments.limit or LINES

    def work(stop: threading.Event, *, only_small: bool = False) -> str:
        """Return the text for the model; with `only_small` none of a large file, nor of one whose size is not known."""
        with open_text(context, context.resolve(arguments.path), arguments.path) as file:
            if only_small and not 0 < os.fstat(file.fileno()).st_size <= HEAD:  # 0: it may be made while it is read
                return ""
            return _window(file, arguments.path, first=first, count=count, stop=stop).text()

    at_once = "" if context.mounts.found else work(threading.Event(), only_small=True)
    return ToolOutput(at_once or await context.mounts.run_in_thread(work))


def open_text(context: ToolContext, path: Path, name: str) -> BinaryIO:
    """A regular file that does not look binary, opened without ever waiting for another end."""
    if not path.exists():
        raise ToolFailed(f"{name} does not exist.")
    if path.is_dir():
        raise ToolFailed(f"{name} is a directory.")
    if not path.is_file():
        raise ToolFailed(f"{name} is not a regular file.")
    with context.directory(path.parent) as parent:
        file = os.fdopen(os.open(path.name, FILE, dir_fd=parent), "rb")
    try:
        _check_text(file, name)
    except BaseException:
        file.close()
        raise
    return file


def _check_text(file: BinaryIO, name: str) -> None:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed(f"{name} is not a regular file.")
    if b"\0" in (file.read(HEAD) or b""):  # None is a special file without data at the moment
        raise ToolFailed(f"{name} is not text ({found.st_size} bytes).")
    file.seek(0)


def _window(file: BinaryIO, name: str, *, first: int, count: int, stop: threading.Event) -> LineWindow:
    skipped = _skip(file, first - 1, stop)
    window = LineWindow(first, total=skipped)
    room = WINDOW_CHARS
    while len(window.lines) < count:
        start = file.tell()
        piece = file.readline(LINE_CHARS * 4)
        number = first + len(window.lines)
        line = _decode(piece, name, number)
        if line.endswith("\r\n"):
            window.crlf = True
            line = line[:-2] + "\n"
        if not line or (window.lines and len(line) > room):
            file.seek(start)
            break
        more = 0 if piece.endswith(b"\n") else _finish_line(file, stop)
        if more or len(line) > LINE_CHARS:
            window.remarks.append(f"line {number} is cut, it has {len(piece) + more} bytes")
            line = line[:LINE_CHARS].removesuffix("\n") + "\n"
        window.lines.append(line)
        room -= len(line)
    window.total += len(window.lines)
    if not window.lines and first > 1:
        raise ToolFailed(f"{name} has {skipped} lines; there is no line {first}.")
    _count_rest(file, window, stop)
    if first == 1 and window.lines and window.lines[0].startswith("\ufeff"):
        window.lines[0] = window.lines[0][1:]
        window.remarks.append("it begins with a byte order mark")
    return window


def _skip(file: BinaryIO, lines: int, stop: threading.Event) -> int:
    """Go to the end of that many lines; how many there were."""
    left, ends = lines, True
    while left and (chunk := _chunk(file, stop)):
        found = chunk.count(b"\n")
        ends = chunk.endswith(b"\n")
        if found < left:
            left -= found
            continue
        at = -1
        for _ in range(left):
            at = chunk.index(b"\n", at + 1)
        file.seek(at + 1 - len(chunk), os.SEEK_CUR)
        return lines
    return lines - left + (0 if ends else 1)


def _finish_line(file: BinaryIO, stop: threading.Event) -> int:
    """Go to the end of the line; how many bytes were left of it."""
    left = 0
    while not stop.is_set() and (piece := file.readline(CHUNK)):
        left += len(piece)
        if piece.endswith(b"\n"):
            break
    return left


def _count_rest(file: BinaryIO, window: LineWindow, stop: threading.Event) -> None:
    seen, ends = 0, True
    while chunk := _chunk(file, stop):
        window.total += chunk.count(b"\n")
        ends = chunk.endswith(b"\n")
        seen += len(chunk)
        if seen >= COUNTED_BYTES:
            window.counted = not file.read(1)
            break
    if window.counted and not ends:
        window.total += 1


def _chunk(file: BinaryIO, stop: threading.Event) -> bytes:
    return b"" if stop.is_set() else file.read(CHUNK)


def _decode(piece: bytes, name: str, number: int) -> str:
    """A line, or its beginning, which may end in the middle of a character."""
    try:
        if b"\0" in piece:
            raise ToolFailed(f"{name} is not text: line {number} has a zero byte.")
        return codecs.getincrementaldecoder("utf-8")().decode(piece, final=len(piece) < LINE_CHARS * 4)
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{name} is not UTF-8 text: line {number} has the byte 0x{piece[error.start]:02x}.") from None


async def _list(context: ToolContext, arguments: ListFilesArguments) -> ToolOutput:
    return ToolOutput(await context.mounts.run_in_thread(lambda stop: _entries(context, arguments.path, stop)))


def _entries(context: ToolContext, name: str, stop: threading.Event) -> str:
    path = context.resolve(name)
    if not path.exists():
        raise ToolFailed(f"{name} does not exist.")
    if not path.is_dir():
        raise ToolFailed(f"{name} is not a directory.")
    found: list[tuple[bool, str]] = []
    more = ""
    with context.directory(path) as directory:
        with os.scandir(directory) as entries:
            for entry in entries:
                if stop.is_set() or len(found) == SEEN_ENTRIES:
                    more = "more than "
                    break
                found.append((not entry.is_dir(follow_symlinks=False), entry.name))
        lines, room = list[str](), WINDOW_CHARS
        for _, entry_name in nsmallest(ENTRIES, found):
            line = _entry(directory, entry_name)
            room -= len(line) + 1
            if room < 0:
                break
            lines.append(line)
    if not found:
        return "[the directory is empty]"
    if len(lines) < len(found) or more:
        lines.insert(0, f"[the first {len(lines)} of {more}{len(found)} entries]")
    return "\n".join(lines)


def _entry(directory: int, name: str) -> str:
    """One line: type, size, name; a link with where it points."""
    hidden = "  (hidden)" if name.startswith(".") else ""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return f"link  {'':>12}  {printable(name)} -> {printable(os.readlink(name, dir_fd=directory))}{hidden}"
    except OSError as error:
        return f"?     {'':>12}  {printable(name)}  ({error.strerror}){hidden}"
    if stat.S_ISDIR(found.st_mode):
        return f"dir   {'':>12}  {printable(name)}/{hidden}"
    if stat.S_ISREG(found.st_mode):
        return f"file  {found.st_size:>12}  {printable(name)}{hidden}"
    return f"other {'':>12}  {printable(name)}{hidden}"


READ = Tool(
    "read",
    "Read a text file, or a window of its lines. Omitted parts are noted in brackets before the text.",
    "pure",
    ReadArguments,
    _read,
    default_policy="allow",
    file_changes="none",
)
LIST = Tool(
    "list",
    "List a directory: type, size in bytes and name of its entries.",
    "pure",
    ListFilesArguments,
    _list,
    default_policy="allow",
    file_changes="none",
)
