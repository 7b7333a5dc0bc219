"""An MCP server over HTTP, old style with sessions, that does what `way` says. HTTP is written by hand."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any, Self

TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object"}},
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]


class OddHttp:
    """`async with OddHttp() as server`; `server.way` and `server.sessions` can be changed at any time."""

    def __init__(self) -> None:
        self.way = "plain"
        self.sessions: set[str] = set()
        self.calls: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}/mcp"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                self.headers = {
                    name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)
                }
                body = await reader.readexactly(int(self.headers.get("content-length", 0)))
                if not await self._answer(first.split()[0], body, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # they hung up
        finally:
            writer.close()

    async def _answer(self, method: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """False to hang up."""
        if self.way == "unauthorized":
            return self._send(writer, 401, b"who are you?", "text/plain")
        if method != "POST":
            return self._send(writer, 405, b"", "text/plain")
        request = json.loads(body)
        name, number = request["method"], request.get("id")
        if name == "server/discover":
            return self._send(writer, 404, b"", "text/plain")
        if name == "initialize":
            session = f"s{len(self.sessions)}-{id(object())}"
            self.sessions.add(session)
            result: dict[str, Any] = {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
            return self._reply(writer, number, result, f"mcp-session-id: {session}\r\n")
        if self.headers.get("mcp-session-id") not in self.sessions:
            return self._send(writer, 404, b"", "text/plain")
        if number is None:
            return self._send(writer, 202, b"", "text/plain")
        if name == "tools/list":
            return self._reply(writer, number, {"tools": TOOLS})
        return await self._call(request, writer)

    async def _call(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        self.calls.append(request["params"])
        match self.way:
            case "broken":
                return self._send(writer, 502, b"bad gateway", "text/html")
            case "forbidden":
                return self._send(writer, 403, b"", "text/plain")
            case "drop":
                return False
            case "cut":
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: hello\n\n"
                )
                await writer.drain()
                return False
            case "garbage":
                return self._send(writer, 200, b'{"half": ', "application/json")
            case "huge":
                text = "y" * (40 << 20)
                return self._reply(writer, request["id"], {"content": [{"type": "text", "text": text}]})
            case _:
                return self._reply(writer, request["id"], {"content": [{"type": "text", "text": "echo"}]})

    def _reply(self, writer: asyncio.StreamWriter, number: int, result: dict[str, Any], more: str = "") -> bool:
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
        return self._send(writer, 200, body, "application/json", more)

    def _send(self, writer: asyncio.StreamWriter, status: int, body: bytes, kind: str, more: str = "") -> bool:
        head = f"HTTP/1.1 {status} So\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        writer.write(head.encode() + body)
        return True
