"""`write` and `edit`: whole or not at all, exact, and with a report of what they did not do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.runtime.tools import EDIT, WRITE
from holdfast.runtime.tools.tool import ToolOutput

from .calling import call, done, failed, somewhere_as_nobody


async def test_what_is_written_is_there(tmp_path: Path) -> None:
    result = await call(WRITE, tmp_path, path="new/dir/../dir/a.txt", content="Grüße\n")
    assert result == ToolOutput("Wrote 8 bytes to new/dir/../dir/a.txt.", ["new/dir/a.txt"])
    assert (tmp_path / "new/dir/a.txt").read_text() == "Grüße\n"
    assert list((tmp_path / "new/dir").iterdir()) == [tmp_path / "new/dir/a.txt"], "no temporary file stays"


async def test_files_and_directories_are_made_like_the_users_own(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        await done(WRITE, tmp_path, path="dir/fresh", content="new")
    finally:
        os.umask(before)
    assert (tmp_path / "dir/fresh").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "dir").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("tool", ["write", "edit"])
async def test_a_file_that_is_replaced_keeps_its_mode_and_its_links(tool: str, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o750)
    (tmp_path / "link").symlink_to("run.sh")
    if tool == "write":
        result = await call(WRITE, tmp_path, path="link", content="new")
    else:
        result = await call(EDIT, tmp_path, path="link", old="old", new="new")
    assert result.files == ["run.sh"]
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "run.sh").read_text() == "new"
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750


async def test_what_cannot_be_written_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    assert await failed(WRITE, tmp_path, path=".", content="x") == ". is a directory."
    assert await failed(WRITE, tmp_path, path="pipe", content="x") == "pipe is not a regular file."
    assert "Not a directory" in await failed(WRITE, tmp_path, path="file/below", content="x")
    assert "File name too long" in await failed(WRITE, tmp_path, path="n" * 300, content="x")
    assert "is not a usable path" in await failed(WRITE, tmp_path, path="\0", content="x")
    gone = tmp_path / "gone"
    assert await failed(WRITE, gone, path="a", content="x") == f"The working directory {gone} does not exist."
    assert not gone.exists()


async def test_what_may_not_be_written_says_so() -> None:
    with somewhere_as_nobody() as cwd:
        (cwd / "fixed").write_text("old")
        (cwd / "fixed").chmod(0o444)
        (cwd / "closed").mkdir()
        (cwd / "closed").chmod(0o500)
        assert await failed(WRITE, cwd, path="fixed", content="x") == "fixed is read-only."
        assert await failed(EDIT, cwd, path="fixed", old="old", new="new") == "fixed is read-only."
        assert "Permission denied" in await failed(WRITE, cwd, path="closed/a", content="x")
        assert (cwd / "fixed").read_text() == "old"
        (cwd / "closed").chmod(0o700)


async def test_a_piece_of_text_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 1\n\ndef g():\n    return 2\n")
    result = await call(EDIT, tmp_path, path="./a.py", old="    return 1\n", new="    x = 1\n    return x\n")
    assert result == ToolOutput("Replaced it once in ./a.py, at line 2.", ["a.py"])
    assert (tmp_path / "a.py").read_text() == "def f():\n    x = 1\n    return x\n\ndef g():\n    return 2\n"
    await done(EDIT, tmp_path, path="a.py", old="    x = 1\n", new="")
    assert (tmp_path / "a.py").read_text() == "def f():\n    return x\n\ndef g():\n    return 2\n"


async def test_a_text_that_is_not_unique_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x = 1\ny = 1\nz = 1\n")
    said = await failed(EDIT, tmp_path, path="a", old=" = 1", new=" = 2")
    assert said.startswith("The old text is not unique: it is 3 times in a, at lines 1, 2, 3; nothing was changed.")
    assert "all=true" in said
    assert (tmp_path / "a").read_text() == "x = 1\ny = 1\nz = 1\n"
    assert (await done(EDIT, tmp_path, path="a", old=" = 1", new=" = 2", all=True)).startswith("Replaced it 3 times")
    assert (tmp_path / "a").read_text() == "x = 2\ny = 2\nz = 2\n"
    (tmp_path / "b").write_text("aaa")
    assert "it is 2 times in b" in await failed(EDIT, tmp_path, path="b", old="aa", new="b"), "which one?"
    (tmp_path / "c").write_text("x\n" * 1000)
    assert "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …" in await failed(EDIT, tmp_path, path="c", old="x", new="y")


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("if x:\n  return", "With other white space it is at line 2; read it again and copy it exactly."),
        ("if x:\n    raise", "Its first line is at line 2, but what follows is different."),
        ("while", "Read the file again; it may have changed."),
        ("  \n\n\n", "It is only white space; read the file again and copy it exactly."),
    ],
)
async def test_a_text_that_is_not_there_gets_a_hint(old: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("def f(x):\n    if x:\n        return\n")
    assert await failed(EDIT, tmp_path, path="a", old=old, new="") == (
        f"The old text is not in a; nothing was changed. {hint}"
    )


async def test_line_ends_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    await done(EDIT, tmp_path, path="a", old="one\ntwo\n", new="1\n2\n2b\n")
    await done(EDIT, tmp_path, path="a", old="three\r\n", new="3\n")
    assert (tmp_path / "a").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n2b\r\n3\r\n"
    (tmp_path / "mixed").write_bytes(b"one\r\ntwo\nthree\n")
    await done(EDIT, tmp_path, path="mixed", old="two\nthree\n", new="2\n3\n")
    assert (tmp_path / "mixed").read_bytes() == b"one\r\n2\n3\n"


async def test_what_cannot_be_edited_says_why(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"a\0b")
    (tmp_path / "latin").write_bytes(b"a\xff")
    (tmp_path / "same").write_text("a")
    (tmp_path / "large").write_bytes(b"a" * 20_000_001)
    reasons = {}
    for path in ("binary", "latin", "same", "large", "missing", "."):
        reasons[path] = await failed(EDIT, tmp_path, path=path, old="a", new="a" if path == "same" else "b")
    assert reasons == {
        "binary": "binary is not text (3 bytes).",
        "latin": "latin is not UTF-8 text: it has the byte 0xff.",
        "same": "The old and the new text are the same; nothing was changed.",
        "large": "large has 20000001 bytes; up to 20000000 can be edited.",
        "missing": "missing does not exist.",
        ".": ". is a directory.",
    }
    assert "fit" in await failed(EDIT, tmp_path, path="same", old="", new="x")
