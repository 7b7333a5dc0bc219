"""An MCP server written with the official SDK: over its pipes, or over streamable HTTP if a port is named."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import BaseModel

server = MCPServer("everything", log_level="ERROR")


class Weather(BaseModel):
    town: str
    degrees: float


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(read_only_hint=False, idempotent_hint=True))
def put(path: str, text: str) -> str:
    """Write a file."""
    Path(path).write_text(text)
    return "put"


@server.tool()
def send(path: str) -> str:
    """Leave a trace in a file, every time."""
    with Path(path).open("a") as file:
        file.write("sent\n")
    return "sent"


@server.tool()
def weather(town: str) -> Weather:
    return Weather(town=town, degrees=3.5)


@server.tool()
def picture() -> CallToolResult:
    data = base64.b64encode(b"x" * 12_000).decode()
    image = ImageContent(data=data, mime_type="image/png")
    return CallToolResult(content=[TextContent(text="Look:"), image], structured_content={"of": "Žižkov"})


@server.tool()
def big(size: int) -> str:
    return "x" * size


@server.tool()
def fail() -> str:
    raise ToolError("the disk is on fire")


@server.tool()
def pid() -> int:
    return os.getpid()


@server.tool()
def environment() -> str:
    return "\n".join(sorted(os.environ))


@server.tool()
async def slow(path: str, seconds: float) -> str:
    """Say in a file that it began, and that it was cancelled."""
    Path(path).write_text("began")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        Path(path).write_text("cancelled")
        raise
    return "slept"


@server.tool()
def die(path: str) -> str:
    Path(path).write_text("died")
    print("my last words", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool(name="get.the/thing with a name that is much longer than any provider would ever take it")
def oddly_named() -> str:
    return "odd"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
