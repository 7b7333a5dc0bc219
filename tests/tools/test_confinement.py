"""No path leads out of the working directory, however it is written and whatever links there are."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.runtime.tools import EDIT, LIST, READ, SEARCH, WRITE
from holdfast.runtime.tools.context import ToolContext, ToolFailed, real_path
from holdfast.runtime.tools.tool import AnyTool, Tool

from .calling import call

SECRET = "the secret that nobody may see"
PIECES = (
    *("a", "b", "file", "in", "out", "up", "root", "loop", "chain", "dangling", "file-out", "cwd", "cwd-evil"),
    *("..", ".", "", "~", "~root", "~nobody-here", "secret", "etc", "passwd", "proc", "self", "\0", "\n", "ü", "*"),
    *("x" * 300, "-rf", "$HOME", "%2e%2e", "..\\..", "....//", " ", "file\0"),
)


class LinkedTree:
    """A working directory full of links, and what lies around it."""

    def __init__(self, base: Path) -> None:
        self.cwd = base / "cwd"
        self.cwd_path = str(self.cwd)
        self.around = [base / "cwd-evil", base / "home", base / "secret"]
        self._base = base
        self.build()

    def build(self) -> None:
        shutil.rmtree(self._base, ignore_errors=True)
        (self.cwd / "a" / "b").mkdir(parents=True)
        (self.cwd / "file").write_text("inside")
        (self.cwd / "a" / "file").write_text("inside")
        for directory in ("cwd-evil", "home"):
            (self._base / directory).mkdir()
            (self._base / directory / "file").write_text(SECRET)
        (self._base / "secret").write_text(SECRET)
        links = {
            "in": "a",
            "out": "../home",
            "up": "..",
            "root": "/",
            "loop": "loop",
            "chain": "a/link",
            "dangling": "../not-yet",
            "file-out": "../secret",
        }
        for name, target in links.items():
            (self.cwd / name).symlink_to(target)
        (self.cwd / "a" / "link").symlink_to("../../cwd-evil")

    def outside(self) -> list[tuple[str, str]]:
        """Everything around the working directory, with its content."""
        found = []
        for directory, _, names in os.walk(self._base):
            if Path(directory).is_relative_to(self.cwd):
                continue
            found += [(f"{directory}/{name}", (Path(directory) / name).read_text()) for name in names]
        return sorted(found)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinkedTree]:
    base = tmp_path_factory.mktemp("confinement").resolve() / "base"
    made = LinkedTree(base)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(base / "home"))
        yield made


def paths() -> st.SearchStrategy[str]:
    pieces = st.one_of(st.sampled_from(PIECES), st.text(max_size=5))
    joined = st.lists(pieces, max_size=8).map("/".join)
    return st.one_of(joined, joined.map("/".__add__), joined.map("CWD/".__add__), st.text())


@settings(max_examples=200, deadline=None)
@given(path=paths())
@example("out/../file")
@example("a/../../cwd-evil/file")
@example("CWD-evil/file")
@example("dangling")
@example("chain/file")
@example("~/file")
@example("loop/../in")
@example("missing/../loop/../out")
def test_what_is_called_inside_is_inside(world: LinkedTree, path: str) -> None:
    path = path.replace("CWD", world.cwd_path)
    try:
        target = ToolContext(world.cwd).resolve(path)
    except ToolFailed:
        return
    real = os.path.realpath(target)
    assert real == str(target) == real_path(target)
    assert real == world.cwd_path or real.startswith(world.cwd_path + "/")


@settings(max_examples=60, deadline=None)
@given(path=paths())
@example("file-out")
@example("out/file")
@example("dangling")
@example("chain/file")
@example("root/etc/passwd")
@example("up/secret")
@example("~/file")
@example("CWD/../secret")
def test_no_tool_reaches_out(world: LinkedTree, path: str) -> None:
    path = path.replace("CWD", world.cwd_path)
    before = world.outside()

    async def try_all() -> list[str]:
        results = [
            await call(READ, world.cwd, path=path),
            await call(LIST, world.cwd, path=path),
            await call(EDIT, world.cwd, path=path, old="secret", new="known"),
            await call(WRITE, world.cwd, path=path, content="mine"),
        ]
        assert not [name for result in results for name in result.files if name[0] == "/" or ".." in name.split("/")]
        return [result.output for result in results]

    outputs = asyncio.run(try_all())
    assert world.outside() == before
    assert SECRET not in "".join(outputs)
    assert "root:" not in "".join(outputs)
    if not (world.cwd / "a" / "b").is_dir() or (world.cwd / "file").read_text() != "inside":
        world.build()


@pytest.mark.parametrize("path", ["out", "up", "root", "chain", "file-out", "..", "/", "~", "a/link", "dangling"])
async def test_a_search_does_not_reach_out(world: LinkedTree, path: str) -> None:
    world.build()
    result = await call(SEARCH, world.cwd, pattern="secret", path=path)
    assert result.outcome == "failed"
    assert "outside of the working directory" in result.output
    assert (await call(SEARCH, world.cwd, pattern="secret")).output.startswith("No matches.")


class Swapped(ToolContext):
    """Between the look and the use somebody puts a link in the place of a directory."""

    def resolve(self, path: str) -> Path:
        target = super().resolve(path)
        (self.cwd / "a").rename(self.cwd / "a-before")
        (self.cwd / "a").symlink_to("../home")
        return target


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (READ, {"path": "a/file"}),
        (LIST, {"path": "a"}),
        (SEARCH, {"path": "a", "pattern": "secret"}),
        (SEARCH, {"path": "a/file", "pattern": "secret"}),
        (WRITE, {"path": "a/file", "content": "mine"}),
        (WRITE, {"path": "a/new/file", "content": "mine"}),
        (EDIT, {"path": "a/file", "old": "secret", "new": "known"}),
    ],
    ids=lambda value: value.name if isinstance(value, Tool) else value["path"],
)
async def test_a_link_that_is_put_there_in_between_leads_nowhere(
    world: LinkedTree, tool: AnyTool, arguments: dict[str, str]
) -> None:
    world.build()
    before = world.outside()
    result = await tool.call(Swapped(world.cwd), json.dumps(arguments))
    assert result.outcome == "failed", result.output
    assert SECRET not in result.output
    assert world.outside() == before
    assert (world.cwd / "a-before" / "file").read_text() == "inside"


async def test_what_is_closed_stays_closed_wherever_one_works(world: LinkedTree, tmp_path: Path) -> None:
    world.build()
    context = ToolContext(world.cwd, closed=(world.cwd / "a",))
    arguments: list[tuple[AnyTool, dict[str, str]]] = [
        (READ, {"path": "a/file"}),
        (READ, {"path": "in/file"}),
        (LIST, {"path": "a"}),
        (WRITE, {"path": "a/new", "content": ""}),
        (EDIT, {"path": "a/file", "old": "i", "new": "o"}),
    ]
    for tool, wanted in arguments:
        result = await tool.call(context, json.dumps(wanted))
        assert (result.outcome, "is closed to tools" in result.output) == ("failed", True)
    everything = ToolContext(tmp_path, also=(Path("/"),))
    for path in ("/proc/self/environ", f"/proc/{os.getpid()}/environ", "/proc"):
        assert "is closed to tools" in (await READ.call(everything, json.dumps({"path": path}))).output


async def test_a_hard_link_is_read_but_its_other_end_is_not_written(world: LinkedTree) -> None:
    world.build()
    (world.cwd / "hard").hardlink_to(world.around[2])
    await call(WRITE, world.cwd, path="hard", content="mine")
    assert (world.cwd / "hard").read_text() == "mine"
    assert world.around[2].read_text() == SECRET
