"""`read` and `list`: windows, what is left out, and everything that is not a text file."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.network_mounts import NetworkMounts
from holdfast.runtime.tools import LIST, READ
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.reading import HEAD, LINE_CHARS
from holdfast.runtime.tools.tool import OUTPUT_LIMIT
from tests.eventually import PATIENCE

from .calling import call, done, failed, somewhere_as_nobody

T = TypeVar("T")


async def test_a_small_file_is_given_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Grüße\n\ttab\nno end")
    assert await done(READ, tmp_path, path="a.txt") == "Grüße\n\ttab\nno end"
    assert await done(READ, tmp_path, path="a.txt", offset=None, limit=None) == "Grüße\n\ttab\nno end"
    (tmp_path / "empty").touch()
    assert await done(READ, tmp_path, path="empty") == "[the file is empty]"


class CountingMounts(NetworkMounts):
    """Counts what gets a thread."""

    threads = 0

    async def run_in_thread(self, work: Callable[[threading.Event], T]) -> T:
        self.threads += 1
        return await super().run_in_thread(work)


@pytest.mark.parametrize(("kind", "size", "threads"), [("ext4", HEAD, 0), ("ext4", HEAD + 1, 1), ("nfs4", 1, 1)])
async def test_a_file_gets_a_thread_if_it_is_large_or_may_hang(
    tmp_path: Path, kind: str, size: int, threads: int
) -> None:
    (tmp_path / "table").write_text(f"1 0 0:1 / /mnt rw - {kind} disk rw\n")
    (tmp_path / "a").write_text("x" * size)
    mounts = CountingMounts(tmp_path / "table")
    result = await READ.call(ToolContext(tmp_path, mounts=mounts), '{"path": "a"}')
    assert (result.output, mounts.threads) == ("x" * size, threads)


async def test_a_file_that_does_not_say_how_long_it_is_gets_a_thread(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("1 0 0:1 / /mnt rw - ext4 disk rw\n")
    (tmp_path / "a").touch()
    mounts = CountingMounts(tmp_path / "table")
    result = await READ.call(ToolContext(tmp_path, mounts=mounts), '{"path": "a"}')
    assert (result.output, mounts.threads) == ("[the file is empty]", 1)


async def test_a_window_says_what_it_is_a_window_of(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 5322)))
    head, _, text = (await done(READ, tmp_path, path="a.txt")).partition("\n")
    assert head == "[lines 1-2000 of 5321; continue with offset=2001]"
    assert text.splitlines() == [f"line {number}" for number in range(1, 2001)]
    middle = await done(READ, tmp_path, path="a.txt", offset=2001, limit=2)
    assert middle == "[lines 2001-2002 of 5321; continue with offset=2003]\nline 2001\nline 2002\n"
    last = await done(READ, tmp_path, path="a.txt", offset=5321)
    assert last == "[lines 5321-5321 of 5321]\nline 5321\n"
    assert await failed(READ, tmp_path, path="a.txt", offset=5322) == "a.txt has 5321 lines; there is no line 5322."
    (tmp_path / "b.txt").write_text("one\ntwo")
    assert await done(READ, tmp_path, path="b.txt", limit=1) == "[lines 1-1 of 2; continue with offset=2]\none\n"
    assert await done(READ, tmp_path, path="b.txt", offset=2) == "[lines 2-2 of 2]\ntwo"
    assert await failed(READ, tmp_path, path="b.txt", offset=3) == "b.txt has 2 lines; there is no line 3."


async def test_going_on_by_offset_gives_the_whole_file(tmp_path: Path) -> None:
    lines = [f"{'x' * (number % 700)}{number}\n" for number in range(3000)]
    (tmp_path / "a").write_text("".join(lines))
    found, offset = "", 1
    while True:
        output = await done(READ, tmp_path, path="a", offset=offset)
        assert len(output) <= OUTPUT_LIMIT
        head, _, text = output.partition("\n")
        found += text
        if "continue with offset=" not in head:
            break
        offset = int(head.rpartition("=")[2].rstrip("]"))
    assert found == "".join(lines)


async def test_a_window_that_is_full_says_how_long_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_text((LINE_CHARS // 2 * "x" + "\n") * 12)
    head, _, text = (await done(READ, tmp_path, path="a")).partition("\n")
    shown = len(text.splitlines())
    assert 1 < shown < 12
    assert head == f"[lines 1-{shown} of 12; continue with offset={shown + 1}]"


async def test_a_huge_file_is_read_only_as_far_as_needed(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write((b"y" * 99 + b"\n") * 200)
        file.truncate(2 << 30)  # sparse: two gigabytes that take no room
    output = await done(READ, tmp_path, path="huge", limit=1)
    assert output == f"[lines 1-1 of more than 200; continue with offset=2]\n{'y' * 99}\n"


async def test_a_long_line_is_cut_and_the_rest_follows(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ü" * 3_000_000 + "\nnext\n")
    output = await done(READ, tmp_path, path="a")
    assert output == f"[lines 1-2 of 2; line 1 is cut, it has 6000001 bytes]\n{'ü' * LINE_CHARS}\nnext\n"
    (tmp_path / "b").write_text("x" * 15_000)
    assert await done(READ, tmp_path, path="b") == "x" * 15_000


async def test_line_ends_and_a_byte_order_mark_are_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    said = "[lines 1-2 of 2; it begins with a byte order mark; lines end with CRLF]"
    assert await done(READ, tmp_path, path="a") == f"{said}\none\ntwo\n"


async def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\x00")
    (tmp_path / "late").write_bytes(b"x\n" * 10_000 + b"\0\n")
    (tmp_path / "latin").write_bytes("ok\nGrüße\n".encode("latin-1"))
    (tmp_path / "half").write_bytes("Grü".encode()[:-1])
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    paths = ("binary", "latin", "half", "pipe", "missing", ".", "binary/x", "dangling", "")
    reasons = {path: await failed(READ, tmp_path, path=path) for path in paths}
    assert reasons == {
        "binary": "binary is not text (5 bytes).",
        "latin": "latin is not UTF-8 text: line 2 has the byte 0xfc.",
        "half": "half is not UTF-8 text: line 1 has the byte 0xc3.",
        "pipe": "pipe is not a regular file.",
        "missing": "missing does not exist.",
        ".": ". is a directory.",
        "": " is a directory.",
        "binary/x": "binary/x does not exist.",
        "dangling": "dangling does not exist.",
    }
    assert "line 10001 has a zero byte" in await failed(READ, tmp_path, path="late", offset=10_000)
    assert "is not a usable path" in await failed(READ, tmp_path, path="a\0b")
    assert await failed(READ, tmp_path, path="loop")
    assert await failed(READ, tmp_path, path="n" * 300)
    gone = tmp_path / "gone"
    assert await failed(READ, gone, path="a") == f"The working directory {gone} does not exist."


async def test_what_may_not_be_read_says_so() -> None:
    with somewhere_as_nobody() as cwd:
        (cwd / "secret").write_text("x")
        (cwd / "secret").chmod(0)
        (cwd / "closed").mkdir()
        (cwd / "closed").chmod(0)
        assert "Permission denied" in await failed(READ, cwd, path="secret")
        assert "Permission denied" in await failed(READ, cwd, path="closed/x")
        assert "Permission denied" in await failed(LIST, cwd, path="closed")
        (cwd / "closed").chmod(0o700)


async def test_reading_can_be_cut(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"y" * 9_000)
        file.truncate(200 << 30)
    reading = asyncio.create_task(call(READ, tmp_path, path="huge", offset=10**9))
    await asyncio.sleep(0.1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(reading, PATIENCE)


async def test_a_directory_is_listed_with_types_and_sizes(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "b.txt").write_text("12345")
    (tmp_path / ".env").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / os.fsdecode(b"\xff\n")).touch()
    assert [" ".join(line.split()) for line in (await done(LIST, tmp_path)).splitlines()] == [
        "dir .git/ (hidden)",
        "dir src/",
        "file 1 .env (hidden)",
        "file 5 b.txt",
        "link link -> /etc/passwd",
        "other pipe",
        "file 0 \\udcff\\n",
    ]
    assert await done(LIST, tmp_path, path="src") == "[the directory is empty]"
    assert await failed(LIST, tmp_path, path="b.txt") == "b.txt is not a directory."
    assert await failed(LIST, tmp_path, path="nowhere") == "nowhere does not exist."
    assert "outside of the working directory" in await failed(LIST, tmp_path, path="..")
    gone = tmp_path / "gone"
    assert await failed(LIST, gone) == f"The working directory {gone} does not exist."


async def test_a_long_list_is_cut(tmp_path: Path) -> None:
    for number in range(1200):
        (tmp_path / f"{number:04d}-{'n' * 100}").touch()
    output = await done(LIST, tmp_path)
    assert len(output) <= OUTPUT_LIMIT
    shown = len(output.splitlines()) - 1
    assert output.startswith(f"[the first {shown} of 1200 entries]\nfile")
    assert shown < 1000
