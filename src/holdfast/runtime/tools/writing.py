"""`write` and `edit`: a file is replaced as a whole or not at all, and only the one in the working directory.

Writing the same file again gives the same file, so `write` is repeated after a crash. An `edit` that has
happened cannot be distinguished from one that never matched, and one whose new text contains the old would be
done twice: it is `unsafe`, so after a crash its outcome is `unknown`, and the model reads the file.

The new content is written under a name of the call first. If the gateway is killed in between, the worker that
picks the call up finds it by that name and takes it away (`_remove_temporary`).
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from contextlib import suppress
from difflib import unified_diff
from hashlib import blake2s
from pathlib import Path
from typing import Annotated

import msgspec

from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.reading import open_text
from holdfast.runtime.tools.tool import Preview, Tool, ToolOutput

EDIT_BYTES = 20_000_000
SHOWN_LINES = 10
FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_MODE = 0o644
"""Files of the user are made like the user's own, not with the gateway's 077."""


class WriteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file, and the whole of its new content."""

    path: Annotated[str, msgspec.Meta(description="The file, relative to the working directory.")]
    content: Annotated[str, msgspec.Meta(description="The whole new content.")]


class EditArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file, a piece of its text, and the text that replaces it."""

    path: Annotated[str, msgspec.Meta(description="The file, relative to the working directory.")]
    old: Annotated[str, msgspec.Meta(min_length=1, description="The text to replace, exactly as it is in the file.")]
    new: Annotated[str, msgspec.Meta(description="The new text.")]
    all: Annotated[bool, msgspec.Meta(description="Replace every occurrence.")] = False


async def _write(context: ToolContext, arguments: WriteArguments) -> ToolOutput:
    def work(stop: threading.Event) -> ToolOutput:
        path, data = context.resolve(arguments.path), arguments.content.encode()
        context.check_writable(path, "write")
        _check_room(path, arguments.path, stop)
        check_unchanged(context, path, arguments.path)
        _replace(context, path, data)
        return ToolOutput(f"Wrote {len(data)} bytes to {arguments.path}.", [context.display(path)])

    return await context.mounts.run_in_thread(work)


async def _edit(context: ToolContext, arguments: EditArguments) -> ToolOutput:
    def work(stop: threading.Event) -> ToolOutput:
        path = context.resolve(arguments.path)
        context.check_writable(path, "edit")
        return ToolOutput(_edit_file(context, path, arguments, stop), [context.display(path)])

    return await context.mounts.run_in_thread(work)


def _preview_write(context: ToolContext, arguments: WriteArguments) -> Preview:
    path, name = context.resolve(arguments.path), arguments.path
    context.check_writable(path, "write")
    _check_room(path, name, threading.Event())
    digest, data = current(context, path)
    if data is None and digest != ABSENT:
        return Preview(f"{name} is replaced as a whole; it is too large to be compared.", (), digest)
    before = (data or b"").decode(errors="replace")
    diff = difference(name, before, arguments.content, is_new=digest == ABSENT)
    return Preview(diff or "(no change)", ("content",), digest)


def _preview_edit(context: ToolContext, arguments: EditArguments) -> Preview:
    path, name = context.resolve(arguments.path), arguments.path
    context.check_writable(path, "edit")
    digest, data = current(context, path)
    _, text, edited, lines = _edited(context, path, arguments)
    if data is None:
        return Preview(f"at {_shown(lines)} of {name}", (), digest)
    return Preview(difference(name, text, edited, is_new=False), ("old", "new"), digest)


def _edit_file(context: ToolContext, path: Path, arguments: EditArguments, stop: threading.Event) -> str:
    name = arguments.path
    before, text, edited, lines = _edited(context, path, arguments)
    _check_room(path, name, stop)
    check_unchanged(context, path, name)
    after = path.stat()
    if (after.st_mtime_ns, after.st_size, after.st_ino) != (before.st_mtime_ns, before.st_size, before.st_ino):
        raise ToolFailed(f"{name} was changed by something else at the same time; nothing was changed. Read it again.")
    times = text.count(_with_line_ends(text, arguments.old))
    _replace(context, path, edited.encode())
    return f"Replaced it {f'{times} times' if times > 1 else 'once'} in {name}, at {_shown(lines)}."


def _edited(context: ToolContext, path: Path, arguments: EditArguments) -> tuple[os.stat_result, str, str, list[int]]:
    """The file's state, its text, the text after the edit, and the lines at which it changes."""
    name = arguments.path
    with open_text(context, path, name) as file:
        before = os.fstat(file.fileno())
        if before.st_size > EDIT_BYTES:
            raise ToolFailed(f"{name} has {before.st_size} bytes; up to {EDIT_BYTES} can be edited.")
        data = file.read()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{name} is not UTF-8 text: it has the byte 0x{data[error.start]:02x}.") from None
    old, new = _with_line_ends(text, arguments.old), _with_line_ends(text, arguments.new)
    if old == new:
        raise ToolFailed("The old and the new text are the same; nothing was changed.")
    lines = _lines_of(text, old)
    if not lines:
        raise ToolFailed(f"The old text is not in {name}; nothing was changed. {_hint(text, arguments.old)}")
    if len(lines) > 1 and not arguments.all:
        raise ToolFailed(
            f"The old text is not unique: it is {len(lines)} times in {name}, at {_shown(lines)}; nothing was changed. "
            "Give more of the text around it, or all=true to replace it everywhere."
        )
    return before, text, text.replace(old, new), lines


def _with_line_ends(text: str, piece: str) -> str:
    """The piece with the line ends of the file, if that has CRLF throughout."""
    if 0 < text.count("\n") == text.count("\r\n"):
        return piece.replace("\r\n", "\n").replace("\n", "\r\n")
    return piece


def _lines_of(text: str, piece: str) -> list[int]:
    """The lines at which it begins; overlapping places count, since the choice would not be clear."""
    lines: list[int] = []
    at, line, counted = text.find(piece), 1, 0
    while at >= 0:
        line += text.count("\n", counted, at)
        counted = at
        lines.append(line)
        at = text.find(piece, at + 1)
    return lines


def _shown(lines: list[int]) -> str:
    named = ", ".join(map(str, lines[:SHOWN_LINES])) + (", …" if len(lines) > SHOWN_LINES else "")
    return f"line{'s' if len(lines) > 1 else ''} {named}"


def _hint(text: str, old: str) -> str:
    """Return what may be wrong: other white space, or only the beginning matches."""
    there = [line.strip() for line in text.splitlines()]
    wanted = [line.strip() for line in old.strip().splitlines()]
    if not any(wanted):
        return "It is only white space; read the file again and copy it exactly."
    starts = [at for at, line in enumerate(there) if line == wanted[0]]
    for at in starts:
        if there[at : at + len(wanted)] == wanted:
            return f"With other white space it is at line {at + 1}; read it again and copy it exactly."
    if starts and len(wanted) > 1:
        return f"Its first line is at line {starts[0] + 1}, but what follows is different."
    return "Read the file again; it may have changed."


def _check_room(path: Path, name: str, stop: threading.Event) -> None:
    """See that a file can be put there."""
    if path.is_dir():
        raise ToolFailed(f"{name} is a directory.")
    if path.exists():
        if not path.is_file():
            raise ToolFailed(f"{name} is not a regular file.")
        if not os.access(path, os.W_OK, effective_ids=True):
            raise ToolFailed(f"{name} is read-only.")
    if stop.is_set():
        raise ToolFailed("It was stopped before anything was changed.")


def _replace(context: ToolContext, path: Path, data: bytes) -> None:
    """Whole or not at all: a crash in the middle leaves the old file. Mode and owner stay."""
    with context.directory(path.parent, make=True) as directory:
        new = _new_name(context)
        if context.call_key:
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=directory)  # of the same call, which was killed and is run again
        with os.fdopen(os.open(new, FRESH, 0o600, dir_fd=directory), "wb") as file:
            try:
                file.write(data)
                file.flush()
                _copy_mode_and_owner(file.fileno(), path.name, directory)
                os.fsync(file.fileno())
                os.replace(new, path.name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(new, dir_fd=directory)
                raise
        os.fsync(directory)


def _new_name(context: ToolContext) -> str:
    return f".holdfast-{context.call_key or secrets.token_hex(8)}"


def _copy_mode_and_owner(file: int, name: str, directory: int) -> None:
    """Give it the mode and the owner of the file that it replaces."""
    try:
        old = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        os.fchmod(file, FILE_MODE)
        return
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.fchown(file, old.st_uid, old.st_gid)
    os.fchmod(file, old.st_mode & 0o777)


def _remove_temporary(context: ToolContext, arguments: WriteArguments | EditArguments) -> None:
    with context.directory(context.resolve(arguments.path).parent) as directory:
        os.unlink(_new_name(context), dir_fd=directory)


# --- what a call would change in a file ------------------------------------------------------------

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
ABSENT = "absent"
COMPARED_BYTES = 1_000_000
COMPARED_LINES = 4_000
"""Larger files are not compared line by line: that takes too long, and a person would not read it."""


def current(context: ToolContext, path: Path) -> tuple[str, bytes | None]:
    """The digest of a file, and its content; None when it does not exist or is too large."""
    try:
        with context.directory(path.parent) as parent:
            file = os.open(path.name, READ, dir_fd=parent)
    except FileNotFoundError:
        return ABSENT, None
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise ToolFailed(f"{path.name} is not a regular file.")
        if found.st_size > COMPARED_BYTES:
            return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}", None
        data = opened.read()
    return blake2s(data, digest_size=16).hexdigest(), data


def check_unchanged(context: ToolContext, path: Path, name: str) -> None:
    """Refuse to change a file that is not the one that a person saw the change of."""
    if context.approved_digest and current(context, path)[0] != context.approved_digest:
        raise ToolFailed(f"{name} was changed after the approval; nothing was done. Call again to ask again.")


def difference(name: str, before: str, after: str, *, is_new: bool) -> str:
    """The change, line by line, as `diff -u` shows it."""
    if before.count("\n") + after.count("\n") > COMPARED_LINES:
        return f"{name}: {len(before)} characters are replaced by {len(after)}; too many lines to compare."
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = unified_diff(old, new, "(new file)" if is_new else name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


WRITE = Tool(
    "write",
    "Write a text file, replacing it as a whole; missing directories are created.",
    "idempotent",
    WriteArguments,
    _write,
    cleanup=_remove_temporary,
    preview=_preview_write,
    default_policy="ask",
    file_changes="reported",
)
EDIT = Tool(
    "edit",
    "Replace a piece of text in a file. It must match exactly, with its white space, and occur only once, "
    "unless all=true.",
    "unsafe",
    EditArguments,
    _edit,
    cleanup=_remove_temporary,
    preview=_preview_edit,
    default_policy="ask",
    file_changes="reported",
)
