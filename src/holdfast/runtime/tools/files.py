"""The file tools: read and write, confined to the working directory."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import msgspec

from holdfast.runtime.tools.tool import Done, Place, Tool, ToolFailed

READ_LIMIT = 2_000_000


class ReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A path in the working directory."""

    path: str


class WriteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A path in the working directory, and the whole new content."""

    path: str
    content: str


async def _read(place: Place, arguments: ReadArguments) -> Done:
    return Done(await asyncio.to_thread(_read_file, place.inside(arguments.path), arguments.path))


def _read_file(path: Path, name: str) -> str:
    if path.is_dir():
        raise ToolFailed(f"{name} is a directory.")
    if not path.exists():
        raise ToolFailed(f"{name} does not exist.")
    if not path.is_file():
        raise ToolFailed(f"{name} is not a regular file.")
    size = path.stat().st_size
    if size > READ_LIMIT:
        raise ToolFailed(f"{name} has {size} bytes, more than the {READ_LIMIT} that can be read.")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ToolFailed(f"{name} is not text ({size} bytes).") from None


async def _write(place: Place, arguments: WriteArguments) -> Done:
    said = await asyncio.to_thread(_write_file, place.inside(arguments.path), arguments)
    return Done(said, [arguments.path])


def _write_file(path: Path, arguments: WriteArguments) -> str:
    """Whole or not at all: a crash in the middle leaves the old file."""
    if path.is_dir():
        raise ToolFailed(f"{arguments.path} is a directory.")
    path.parent.mkdir(parents=True, exist_ok=True)
    data = arguments.content.encode("utf-8", errors="surrogatepass")
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".holdfast-", delete=False) as temporary:
        try:
            temporary.write(data)
            temporary.flush()
            os.fsync(temporary.fileno())
            Path(temporary.name).chmod(mode)
            Path(temporary.name).replace(path)
        except BaseException:
            Path(temporary.name).unlink(missing_ok=True)
            raise
    return f"Wrote {len(data)} bytes to {arguments.path}."


def _umask() -> int:
    """Files of the user are made like the user's own, not with the gateway's 077."""
    return 0o022


READ = Tool("read", "Read a text file of the working directory.", "pure", ReadArguments, _read)
WRITE = Tool("write", "Write a text file of the working directory, replacing it.", "idempotent", WriteArguments, _write)
