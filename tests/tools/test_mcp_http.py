"""MCP over streamable HTTP, on loopback: a server of the official SDK, and one that does everything wrong."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from holdfast.runtime.mcp.servers import McpServer
from holdfast.runtime.tools.tool import OUTPUT_LIMIT, ToolOutput
from tests.eventually import PATIENCE

from .calling import Start, eventually, offered, run
from .odd_http import OddHttp

SCRIPT = str(Path(__file__).with_name("mcp_server.py"))


async def serve(port: int) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(sys.executable, SCRIPT, str(port))

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    await eventually(listens)
    return process


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_server_over_http_is_like_any_other(start: Start, tmp_path: Path) -> None:
    port = free_port()
    process = await serve(port)
    try:
        servers = start(McpServer(name="web", url=f"http://127.0.0.1:{port}/mcp"))
        tools = await offered(servers, "web")
        assert (tools["web__add"].effect, tools["web__send"].effect) == ("pure", "unsafe")
        assert await run(tools["web__add"], a=1, b=2) == ToolOutput("3")
        failed = await run(tools["web__fail"])
        assert (failed.outcome, "the disk is on fire" in failed.output) == ("failed", True)
        large = await run(tools["web__big"], size=1_000_000)
        assert "of 1000000 characters left out" in large.output
        assert len(large.output) < OUTPUT_LIMIT + 100

        trace = tmp_path / "trace"
        slow = asyncio.create_task(run(tools["web__slow"], path=str(trace), seconds=60))
        await eventually(lambda: trace.exists() and trace.read_text() == "began")
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(slow, PATIENCE)
        await eventually(lambda: trace.read_text() == "cancelled")

        lost = await run(tools["web__die"], path=str(trace))
        assert lost.outcome == "unknown"
        assert "It may or may not have taken effect." in lost.output
        await process.wait()
        down = await run(tools["web__add"], a=1, b=2)
        assert down.outcome == "failed"
        assert down.output.startswith("The MCP server 'web' is not available: it cannot be reached")
        unsent = await run(tools["web__send"], path=str(trace))
        assert (unsent.outcome, unsent.output.endswith("The call was not sent.")) == ("failed", True)
        assert "web__add" in await offered(servers, "web")

        process = await serve(port)
        assert await run(tools["web__add"], a=1, b=2) == ToolOutput("3")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_restarted_server_is_initialized_again(start: Start) -> None:
    async with OddHttp() as server:
        tools = await offered(start(McpServer(name="odd", url=server.url, headers={"X-Key": "k"})), "odd")
        assert await run(tools["odd__echo"]) == ToolOutput("echo")
        assert server.headers["x-key"] == "k"
        server.sessions.clear()
        assert await run(tools["odd__echo"]) == ToolOutput("echo")
        assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("way", "outcome", "says"),
    [
        ("broken", "unknown", "HTTP status 502"),
        ("drop", "unknown", "disconnected"),
        ("cut", "unknown", "SSE stream ended without a response"),
        ("garbage", "unknown", "Failed to parse JSON response"),
        ("huge", "unknown", "it sent more than 16 MiB in one message"),
        ("forbidden", "failed", "The MCP server 'odd' answered: Server returned an error response (HTTP status 403)"),
    ],
)
async def test_what_can_go_wrong_on_the_way(start: Start, way: str, outcome: str, says: str) -> None:
    async with OddHttp() as server:
        tools = await offered(start(McpServer(name="odd", url=server.url)), "odd")
        server.way = way
        result = await run(tools["odd__echo"])
        assert (result.outcome, len(server.calls)) == (outcome, 1), "it is not sent twice"
        assert says in result.output
        assert (await run(tools["odd__look"])).outcome == "failed", "what changes nothing is never in doubt"
        server.way = "plain"
        assert await run(tools["odd__echo"]) == ToolOutput("echo")


async def test_a_wrong_key_is_called_what_it_is(start: Start) -> None:
    async with OddHttp() as server:
        server.way = "unauthorized"
        definition = McpServer(name="odd", url=server.url + "?key=sesame", headers={"Authorization": "Bearer sesame1"})
        servers = start(definition)
        [stand_in] = await servers.tools(["odd"])
        assert "HTTP status 401" in servers.problems["odd"]
        assert "sesame" not in stand_in.spec.description
        server.way = "plain"
        assert (await run(stand_in)).outcome == "done"
