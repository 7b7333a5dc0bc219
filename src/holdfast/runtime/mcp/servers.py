"""MCP: the tools that servers offer, as tools of the agent.

A tool is called SERVER__tool. A server that is down does not stop a turn: its tools stay as they were
last seen and say so when they are called, or a tool `SERVER__unavailable` replaces them and says why. A
call that was sent and not answered is `unknown`, unless the tool changes nothing.

Not here: how a connection lives (`connection.py`), how a server is reached (`transport.py`).
The SDK is slow to import; importing this file does not import it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from holdfast.domain.events.session import Effect
from holdfast.domain.text import size
from holdfast.models.model import ToolSpec
from holdfast.runtime.mcp.connection import McpConnection, McpServer, McpToolInfo, NoAnswer, ServerDown, ServerRefused
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.runtime.tools.tool import AnyTool, Tool, ToolOutput, bounded, failed_outcome
from holdfast.settings import Policy

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, TextResourceContents


__all__ = ["McpServer", "McpServers"]

CALL_SECONDS = 600.0
FRESH_SECONDS = 60.0
COOL_DOWN_SECONDS = 15.0
NAME_LENGTH = 64
DESCRIPTION_LENGTH = 8_000


class McpServers:
    """All servers that are configured; one connection each, shared by all sessions."""

    def __init__(self, servers: Iterable[McpServer] = (), *, call_seconds: float = CALL_SECONDS) -> None:
        self._call_seconds = call_seconds
        self._servers: dict[str, McpClient] = {}
        self._leaving: list[McpConnection] = []
        self.define(servers)

    def define(self, servers: Iterable[McpServer]) -> None:
        """Set the servers. One that has not changed keeps its connection."""
        before, self._servers = self._servers, {}
        for definition in servers:
            known = before.get(definition.name)
            if known is None or known.definition != definition:
                known = McpClient(definition, self._call_seconds)
            self._servers[definition.name] = known
        for server in before.values():
            if self._servers.get(server.definition.name) is not server:
                self._leaving = [old for old in (*self._leaving, *server.leave()) if not old.gone]

    @property
    def problems(self) -> dict[str, str]:
        """The servers that could not be used when they were last needed, and why."""
        return {name: server.problem for name, server in self._servers.items() if server.problem}

    async def tools(self, names: Iterable[str]) -> list[AnyTool]:
        """Return the tools of these servers. A server that is down has one tool, which says why."""
        servers = [self._servers.get(name) or McpClient(McpServer(name=name), self._call_seconds) for name in names]
        offers = await asyncio.gather(*(server.tools() for server in servers))
        pairs = [(server, offered) for server, found in zip(servers, offers, strict=True) for offered in found]
        plain = [_name(server.definition.name, offered.name) for server, offered in pairs]
        often = Counter(plain)
        tools: list[AnyTool] = [
            McpTool(
                name=name if often[name] == 1 else _marked(name, server.definition.name, offered.name),
                server=server,
                offered=offered,
            )
            for (server, offered), name in zip(pairs, plain, strict=True)
        ]
        absent = [server for server, found in zip(servers, offers, strict=True) if not found and server.problem]
        return tools + [_unavailable(server) for server in absent]

    async def close(self) -> None:
        """End all connections; their processes end with them."""
        leaving = self._leaving + [old for server in self._servers.values() for old in server.leave()]
        self._servers = {}
        self._leaving = []
        await asyncio.gather(*(connection.ended() for connection in leaving))


class McpClient:
    """One server: its definition, its connection while there is one, and what it offered last."""

    def __init__(self, definition: McpServer, call_seconds: float) -> None:
        self.definition = definition
        self.problem = ""
        self._call_seconds = call_seconds
        self._connection: McpConnection | None = None
        self._offered: list[McpToolInfo] = []
        self._failed_at = 0.0
        self._left = False

    def leave(self) -> list[McpConnection]:
        """Stop using the server; return the connection that must end."""
        self._left = True
        if self._connection is None:
            return []
        self._connection.end()
        return [self._connection]

    async def tools(self) -> list[McpToolInfo]:
        """Return its tools; those that it offered last, while it is down."""
        now = asyncio.get_running_loop().time()
        if self.problem and now - self._failed_at < COOL_DOWN_SECONDS:
            return self._offered
        try:
            connection = await self.connected()
            stale = connection.changed.is_set() or now - connection.listed_at > FRESH_SECONDS
            if connection.offered is None or stale:
                self._offered = await connection.list_tools()
        except ServerDown as error:
            self._fail(str(error))
        except Exception as error:  # no error of a server may fail a turn
            self._fail(f"it does not list its tools: {self.definition.without_secrets(str(error) or repr(error))}")
        return self._offered

    async def call(self, offered: McpToolInfo, arguments: dict[str, Any]) -> ToolOutput:
        """Call one of its tools; if the call did not get through, once more on a new connection."""
        try:
            connection = await self.connected()
            try:
                answer = await connection.call(offered.name, arguments, seconds=self._call_seconds)
            except ServerDown:
                connection = await self.connected()
                answer = await connection.call(offered.name, arguments, seconds=self._call_seconds)
        except ServerDown as error:
            self._fail(str(error))
            return ToolOutput(f"{self.describe_problem} The call was not sent.", outcome="failed")
        except ServerRefused as error:
            return ToolOutput(bounded(f"The MCP server {self.definition.name!r} answered: {error}"), outcome="failed")
        except NoAnswer as error:
            text = bounded(f"No answer from the MCP server {self.definition.name!r}: {error}.")
            if offered.effect == "pure":
                return ToolOutput(f"{text} The tool changes nothing, so nothing was changed.", outcome="failed")
            return ToolOutput(f"{text} It may or may not have taken effect.", outcome="unknown")
        return to_result(answer, hide=self.definition.without_secrets)

    async def connected(self) -> McpConnection:
        """Return the connection, opened now if there is none."""
        while True:
            current = self._connection
            if current is not None and current.over:
                await current.ended()
                if self._connection is current:
                    self._connection = None
                continue
            if self._left:
                raise ServerDown("it is no longer configured, or the gateway is being stopped")
            if current is None:
                current = self._connection = McpConnection(self.definition)
            await current.opened()
            self.problem = ""
            return current

    @property
    def describe_problem(self) -> str:
        """Return a sentence that says why it cannot be used."""
        return bounded(f"The MCP server {self.definition.name!r} is not available: {self.problem}.")

    def _fail(self, why: str) -> None:
        self.problem = why
        self._failed_at = asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of a server."""

    name: str
    server: McpClient = field(repr=False)
    offered: McpToolInfo

    @property
    def effect(self) -> Effect:
        """The effect class of the server's hints; else `unsafe`."""
        return self.offered.effect

    @property
    def spec(self) -> ToolSpec:
        """As the model sees it."""
        return ToolSpec(self.name, bounded(self.offered.description, DESCRIPTION_LENGTH), self.offered.parameters)

    @property
    def default_policy(self) -> Policy:
        """`ask`: the server's hints do not decide whether it may be called."""
        return "ask"

    def subject(self, context: ToolContext, arguments: str) -> str:  # noqa: ARG002
        """What its arguments mean is only known to the server."""
        _parse(arguments)
        return ""

    def clean_up(self, context: ToolContext, arguments: str) -> None:
        """What it leaves behind is only known to the server."""

    async def call(self, context: ToolContext, arguments: str) -> ToolOutput:  # noqa: ARG002
        """Ask the server."""
        try:
            parsed = _parse(arguments)
        except ToolFailed as error:
            return failed_outcome(error)
        return await self.server.call(self.offered, parsed)


class AnyArguments(msgspec.Struct, frozen=True):
    """Arguments that are not read."""


def _unavailable(server: McpClient) -> AnyTool:
    """Return what replaces the tools of a server that could not be reached: the model learns why, and may try again."""

    async def try_again(_: ToolContext, __: AnyArguments) -> ToolOutput:
        server.problem = ""
        offered = await server.tools()
        if server.problem:
            return ToolOutput(server.describe_problem, outcome="failed")
        return ToolOutput(f"It is available now, with {len(offered)} tools, from the next step on.")

    return Tool(
        _name(server.definition.name, "unavailable"),
        bounded(f"{server.describe_problem} Call this to try again.", DESCRIPTION_LENGTH),
        "pure",
        AnyArguments,
        try_again,
        subject_field="text",
        default_policy="allow",
        file_changes="none",
    )


def _parse(arguments: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ToolFailed(f"The arguments do not fit: {error}.") from error


def _name(server: str, tool: str) -> str:
    """Return SERVER__tool with the characters and the length that every provider accepts."""
    prefix = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]", "_", server)).strip("_") or "mcp"
    name = f"{prefix}__{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"
    return name if len(name) <= NAME_LENGTH else _marked(name, server, tool)


def _marked(name: str, server: str, tool: str) -> str:
    """Return a unique form of a name; the same for the same tool, independent of others."""
    digest = blake2s(f"{server}\0{tool}".encode(), digest_size=4).hexdigest()
    return f"{name[: NAME_LENGTH - len(digest) - 1]}_{digest}"


# --- what a server answers, as text for the model: text as it is, everything else described ------


def to_result(answer: CallToolResult, *, hide: Callable[[str], str]) -> ToolOutput:
    """The outcome, with the text bounded and without the secrets that the server was given."""
    texts = [block.text for block in answer.content if block.type == "text"]
    parts = [_describe(block) for block in answer.content]
    if answer.structured_content is not None and not _is_repeated_as_text(answer.structured_content, texts):
        parts.append(json.dumps(answer.structured_content, ensure_ascii=False))
    text = "\n".join(parts) or "[no output]"
    clean = text.encode("utf-8", "backslashreplace").decode()
    return ToolOutput(bounded(hide(clean)), outcome="failed" if answer.is_error else "done")


def _is_repeated_as_text(structured: Any, texts: list[str]) -> bool:
    """Servers repeat their structured content as text, for clients that do not know it."""
    inner = (
        structured.get("result", structured) if isinstance(structured, dict) and len(structured) == 1 else structured
    )
    if isinstance(inner, list) and len(texts) == len(inner) != 1:
        return all(_is_same(text, item) for text, item in zip(texts, inner, strict=True))
    return len(texts) == 1 and (_is_same(texts[0], structured) or _is_same(texts[0], inner))


def _is_same(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return text == value
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False


def _describe(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type}, {block.mime_type}, {_size(block.data)}]"
        case "resource_link":
            return f"[link to {block.name}: {block.uri}]"
        case "resource":
            return _resource(block.resource)
        case _ as never:
            assert_never(never)


def _resource(resource: TextResourceContents | BlobResourceContents) -> str:
    kind = f", {resource.mime_type}" if resource.mime_type else ""
    if hasattr(resource, "text"):
        return f"[resource {resource.uri}{kind}]\n{resource.text}"
    return f"[resource {resource.uri}{kind}, {_size(resource.blob)}]"


def _size(base64: str) -> str:
    return size(len(base64) * 3 // 4)
