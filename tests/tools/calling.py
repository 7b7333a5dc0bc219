"""What the tests of the tools share: calling one as the loop does."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.runtime.mcp.servers import McpServers
from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.tool import AnyTool, ToolOutput
from tests.eventually import PATIENCE

NOBODY = 65534
PLACE = ToolContext(Path("/"))
Start = Callable[..., McpServers]


async def offered(servers: McpServers, *names: str) -> dict[str, AnyTool]:
    return {tool.name: tool for tool in await servers.tools(names)}


async def run(tool: AnyTool, **arguments: object) -> ToolOutput:
    return await tool.call(PLACE, json.dumps(arguments))


async def call(tool: AnyTool, cwd: Path, **arguments: object) -> ToolOutput:
    return await tool.call(ToolContext(cwd), json.dumps(arguments))


async def done(tool: AnyTool, cwd: Path, **arguments: object) -> str:
    result = await call(tool, cwd, **arguments)
    assert result.outcome == "done", result.output
    return result.output


async def failed(tool: AnyTool, cwd: Path, **arguments: object) -> str:
    result = await call(tool, cwd, **arguments)
    assert result.outcome == "failed", result.output
    assert result.files == []
    return result.output


@contextmanager
def somewhere_as_nobody() -> Iterator[Path]:
    """A directory of a user without rights, as that user: root may read and write everything."""
    with tempfile.TemporaryDirectory() as directory:
        path, root = Path(directory), os.geteuid() == 0
        if root:
            os.chown(path, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield path
        finally:
            if root:
                os.seteuid(0)


async def eventually(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not check():
            await asyncio.sleep(0.01)


async def noticed(pid: int) -> None:
    """Wait until a child that was killed has been reaped, and everybody who heard it was told."""
    await eventually(lambda: not Path(f"/proc/{pid}").exists())
    await asyncio.sleep(0.05)


def _children() -> set[int]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text(errors="replace").rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.add(int(stat.parent.name))
    return found


class Children:
    """The living processes that this one started since the test began."""

    def __init__(self) -> None:
        self._before = _children()

    def __call__(self) -> set[int]:
        return _children() - self._before


def is_alive(pid: int) -> bool:
    """A zombie is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
