"""`search`: the same answers from ripgrep and from our own scan, bounded, and killed when cut."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from holdfast.runtime.tools import SEARCH
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.searching import search_tool
from holdfast.runtime.tools.tool import OUTPUT_LIMIT
from tests.eventually import PATIENCE

from .calling import Children, call, done, failed, somewhere_as_nobody

ENDLESS = r"(x+x+)+y"


@pytest.fixture(params=["ripgrep", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setenv("PATH", "/nowhere")
    elif shutil.which("rg") is None:
        pytest.skip("there is no ripgrep on this machine")
    return str(request.param)


@pytest.fixture
def only_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    for skipped in (".git", "node_modules", "src/__pycache__"):
        (tmp_path / skipped).mkdir()
        (tmp_path / skipped / "found.py").write_text("needle\n")
    (tmp_path / "a.py").write_text("one\n  a Needle = 1\nneedle.\n")
    (tmp_path / "src" / "b.ts").write_bytes(b"needle();\r\nneedlework\r\n")
    (tmp_path / "src" / "deep" / "c.py").write_text("Stra\u00dfe needle\n")
    (tmp_path / ".hidden").write_text("needle\n")
    (tmp_path / ".gitignore").write_text("*.py\n")
    (tmp_path / "binary").write_bytes(b"\0needle\n")
    (tmp_path / "link").symlink_to("a.py")
    return tmp_path


@pytest.mark.usefixtures("engine")
async def test_what_is_closed_is_not_searched(tree: Path) -> None:
    """The home of Holdfast may lie in the working directory; its token must not be found."""
    home = tree / "src" / "[a] home*"
    home.mkdir()
    (home / "token").write_text("needle\n")
    context = ToolContext(tree, closed=(home,))
    found = await SEARCH.call(context, '{"pattern": "needle"}')
    assert "src/b.ts:1:needle();" in found.output
    assert "home" not in found.output
    below = await SEARCH.call(context, '{"pattern": "needle", "path": "src"}')
    assert "home" not in below.output
    inside = await SEARCH.call(context, json.dumps({"pattern": "needle", "path": "src/[a] home*"}))
    assert (inside.outcome, "is closed to tools" in inside.output) == ("failed", True)


@pytest.mark.usefixtures("engine")
async def test_matches_come_with_file_and_line(tree: Path) -> None:
    assert sorted((await done(SEARCH, tree, pattern="needle")).splitlines()) == [
        ".hidden:1:needle",
        "a.py:3:needle.",
        "src/b.ts:1:needle();",
        "src/b.ts:2:needlework",
        "src/deep/c.py:1:Straße needle",
    ]
    assert await done(SEARCH, tree, pattern=r"^\s+a\s\w+ = \d$") == "a.py:2:  a Needle = 1"
    assert await done(SEARCH, tree, pattern="needle.", literal=True) == "a.py:3:needle."
    assert await done(SEARCH, tree, pattern="work$") == "src/b.ts:2:needlework"
    assert (await done(SEARCH, tree, pattern="NEEDLE", ignore_case=True, path="a.py")).count("\n") == 1
    assert await done(SEARCH, tree, pattern="needle", path="src/deep") == "src/deep/c.py:1:Straße needle"
    assert await done(SEARCH, tree, pattern="needle", path="src/deep/c.py") == "src/deep/c.py:1:Straße needle"
    assert await done(SEARCH, tree, pattern="needle", path="node_modules") == "node_modules/found.py:1:needle"
    assert (await done(SEARCH, tree, pattern="nothing here")).startswith("No matches. Not searched")
    assert await done(SEARCH, tree, pattern="-e", literal=True, glob="*.md") != ""


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("*.py", {"a.py", "src/deep/c.py"}),
        ("*.{py,ts}", {"a.py", "src/b.ts", "src/deep/c.py"}),
        ("src/**/*.py", {"src/deep/c.py"}),
        ("src/*", {"src/b.ts"}),
        ("**/deep/*", {"src/deep/c.py"}),
        ("[ab].*", {"a.py", "src/b.ts"}),
        ("?.py", {"a.py", "src/deep/c.py"}),
        ("!*.py", {".hidden", "src/b.ts"}),
        (None, {".hidden", "a.py", "src/b.ts", "src/deep/c.py"}),
    ],
)
async def test_a_glob_says_which_files(tree: Path, glob: str | None, files: set[str]) -> None:
    output = await done(SEARCH, tree, pattern="needle", glob=glob)
    assert {line.partition(":")[0] for line in output.splitlines()} == files


@pytest.mark.usefixtures("engine")
async def test_many_and_long_matches_are_cut(tmp_path: Path, children: Children) -> None:
    (tmp_path / "many").write_text("needle\n" * 5000)
    head, *lines = (await done(SEARCH, tmp_path, pattern="needle")).splitlines()
    assert head == "[the first 100 matches, there are more; narrow the pattern, path or glob]"
    assert len(lines) == 100
    assert len((await done(SEARCH, tmp_path, pattern="needle", limit=3)).splitlines()) == 4
    (tmp_path / "many").write_text("needle\n" * 7)
    assert "[" not in await done(SEARCH, tmp_path, pattern="needle", limit=7)
    (tmp_path / "many").write_text(("needle" + "x" * 2_000_000 + "\n") * 3 + f"needle {'y' * 450}\n" * 500)
    output = await done(SEARCH, tmp_path, pattern="needle", limit=1000)
    assert len(output) <= OUTPUT_LIMIT
    assert "[the first " in output.splitlines()[0]
    assert len(output.splitlines()[1]) < 700
    assert children() == set()


@pytest.mark.usefixtures("engine")
async def test_what_cannot_be_searched_says_why(tree: Path) -> None:
    assert "is not a regular expression: " in await failed(SEARCH, tree, pattern="(unclosed")
    assert await failed(SEARCH, tree, pattern="a\nb") == "The pattern must be one line of text."
    assert await failed(SEARCH, tree, pattern="a", glob="\0") == "The glob must be one line of text."
    assert await failed(SEARCH, tree, pattern="a", path="missing") == "missing does not exist."
    assert await failed(SEARCH, tree, pattern="a", path="binary") == "binary is not text (8 bytes)."
    assert "outside" in await failed(SEARCH, tree, pattern="a", path="..")
    os.mkfifo(tree / "pipe")
    assert await failed(SEARCH, tree, pattern="a", path="pipe") == "pipe is not a regular file."
    assert await done(SEARCH, tree, pattern="work") == "src/b.ts:2:needlework", "nobody waits at a pipe"
    gone = tree / "gone"
    assert await failed(SEARCH, gone, pattern="a") == f"The working directory {gone} does not exist."


@pytest.mark.usefixtures("engine")
async def test_names_that_are_no_text_and_texts_that_are_no_utf8(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.txt")).write_bytes(b"needle \xff\n")
    assert await done(SEARCH, tmp_path, pattern="needle") == "\\udcff.txt:1:needle \ufffd"


async def test_a_pattern_that_ripgrep_does_not_support_is_searched_by_python(tree: Path) -> None:
    assert await done(SEARCH, tree, pattern="needle(?=work)") == "src/b.ts:2:needlework"


@pytest.mark.skipif(shutil.which("rg") is None, reason="there is no ripgrep on this machine")
async def test_a_file_that_may_not_be_read_is_mentioned() -> None:
    with somewhere_as_nobody() as cwd:
        (cwd / "a").write_text("needle")
        (cwd / "b").write_text("needle")
        (cwd / "a").chmod(0)
        head, *lines = (await done(SEARCH, cwd, pattern="needle")).splitlines()
        assert head.startswith("[1 could not be read, the first: ")
        assert lines == ["b:1:needle"]


@pytest.mark.usefixtures("only_python")
async def test_a_search_that_takes_too_long_is_ended(tmp_path: Path, children: Children) -> None:
    (tmp_path / "a").write_text("xxy\n")
    (tmp_path / "b").write_text("x" * 60 + "\n")
    output = await done(search_tool(seconds=1), tmp_path, pattern=ENDLESS)
    assert output.startswith("[stopped after 1 s, there may be more; narrow the path or the glob]\n")
    assert children() == set()


@pytest.mark.usefixtures("only_python")
async def test_a_search_that_is_cut_is_killed(tmp_path: Path, children: Children) -> None:
    (tmp_path / "b").write_text("x" * 60 + "\n")
    searching = asyncio.create_task(call(SEARCH, tmp_path, pattern=ENDLESS))
    while not children():
        await asyncio.sleep(0.01)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(searching, PATIENCE)
    assert children() == set()


async def test_a_scan_that_nobody_waits_for_ends_by_itself(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("x" * 60 + "\n")
    script = Path(sys.modules[search_tool.__module__].__file__ or "").with_name("scan.py")
    wish = '{"pattern": "(x+x+)+y", "literal": false, "ignore_case": false, "glob": "", "file": "",'
    wish += ' "skipped": [], "closed": [], "seconds": 1}'
    scan = await asyncio.create_subprocess_exec(sys.executable, "-I", "-S", str(script), wish, cwd=tmp_path)
    assert await asyncio.wait_for(scan.wait(), PATIENCE) < 0
