"""The file tools: confined to the working directory, whole or not at all, bounded."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.runtime.tools.files import READ, READ_LIMIT, WRITE
from holdfast.runtime.tools.tool import OUTPUT_LIMIT, Result, bounded


async def read(cwd: Path, path: str) -> Result:
    return await READ.call(cwd, json.dumps({"path": path}))


async def write(cwd: Path, path: str, content: str) -> Result:
    return await WRITE.call(cwd, json.dumps({"path": path, "content": content}))


async def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    assert await write(tmp_path, "new/dir/a.txt", "Grüße\n") == Result("done", "Wrote 8 bytes to new/dir/a.txt.")
    assert await read(tmp_path, "new/dir/a.txt") == Result("done", "Grüße\n")
    assert list((tmp_path / "new/dir").iterdir()) == [tmp_path / "new/dir/a.txt"], "no temporary file stays"


async def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o750)
    await write(tmp_path, "run.sh", "new")
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750
    await write(tmp_path, "fresh", "new")
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "link/x", "\0", "."])
async def test_outside_of_the_working_directory_nothing_is_touched(tmp_path: Path, path: str) -> None:
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    (cwd / "link").symlink_to(tmp_path)
    assert (await read(cwd, path)).outcome == "failed"
    assert (await write(cwd, path, "x")).outcome == "failed"
    assert sorted(tmp_path.iterdir()) == [cwd]


async def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_bytes(b"x" * (READ_LIMIT + 1))
    os.mkfifo(tmp_path / "pipe")
    reasons = {path: (await read(tmp_path, path)).output for path in ("binary", "large", "pipe", "missing", ".")}
    assert reasons == {
        "binary": "binary is not text (3 bytes).",
        "large": f"large has {READ_LIMIT + 1} bytes, more than the {READ_LIMIT} that can be read.",
        "pipe": "pipe is not a regular file.",
        "missing": "missing does not exist.",
        ".": ". is a directory.",
    }


async def test_a_working_directory_that_is_gone_says_so(tmp_path: Path) -> None:
    result = await read(tmp_path / "gone", "a")
    assert result == Result("failed", f"The working directory {tmp_path / 'gone'} does not exist.")


async def test_an_error_of_the_system_is_an_outcome(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert (await write(tmp_path, "file/below", "x")).outcome == "failed"
    assert (await write(tmp_path, "n" * 300, "x")).outcome == "failed"


async def test_long_output_keeps_head_and_tail_and_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("a" * 60_000 + "b" * 60_000)
    output = (await read(tmp_path, "long")).output
    assert output.startswith("aaa")
    assert output.endswith("bbb")
    assert "[… 70000 of 120000 characters left out …]" in output
    assert bounded("x" * OUTPUT_LIMIT) == "x" * OUTPUT_LIMIT


def test_a_tool_describes_its_arguments() -> None:
    spec = WRITE.spec
    assert spec.name == "write"
    assert spec.parameters["required"] == ["path", "content"]
