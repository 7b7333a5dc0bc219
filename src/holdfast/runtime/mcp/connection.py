"""One MCP server: its definition, and the one connection that all sessions of the gateway share.

A connection is opened when it is first needed, and again when it has died. The SDK's task groups must be left in
the task in which they were entered, so each connection has a task of its own that lives as long as it.
"""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.domain.events.session import Effect
from holdfast.secrets import Secrets, is_path

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolResult, Tool

    from holdfast.runtime.mcp.transport import McpTransport, Sending

UNANSWERED = ("SSE stream ", "Failed to parse ")
"""Errors that the SDK reports when the server's answer was incomplete or invalid."""
LIST_SECONDS = 30.0
END_SECONDS = 10.0
MAX_PAGES = 100
MAX_TOOLS = 500
SCHEMA_LENGTH = 50_000
"""Every request to the model carries it."""
WIRE = "holdfast.runtime.mcp.transport"
GONE = {"Session terminated", "Session not found", "Not Found: Session has been terminated"}
"""Errors of an HTTP server that was restarted: it does not know the session, and has done nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server in config.toml: a command, or a URL. Only its name is safe to be shown."""

    name: str
    command: list[str] = field(default_factory=list, repr=False)
    url: str = field(default="", repr=False)
    env: dict[str, str] = field(default_factory=dict, repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    secrets: Secrets = field(init=False, repr=False, compare=False)
    """The values that it was given, except paths."""

    def __post_init__(self) -> None:
        sent = {name: value.partition(" ")[2] or value for name, value in self.headers.items()}  # without "Bearer"
        given = {**self.env, **sent, f"the url of {self.name}": self.url}
        secrets = Secrets({name: value for name, value in given.items() if not is_path(value)})
        object.__setattr__(self, "secrets", secrets)

    def without_secrets(self, text: str) -> str:
        """Return a message without secrets, so that it may be shown."""
        return self.secrets.mask(text)


@dataclass(frozen=True, slots=True)
class McpToolInfo:
    """A tool as its server describes it."""

    name: str
    description: str
    parameters: dict[str, object]
    effect: Effect


class ServerDown(Exception):
    """The server cannot be used; nothing was asked of it."""


class ServerRefused(Exception):
    """The server reports that it did not carry out the call."""


class NoAnswer(Exception):
    """The call was sent, and its outcome is not known."""


class McpConnection:
    """A connection, which is opened once."""

    def __init__(self, server: McpServer) -> None:
        self.offered: list[McpToolInfo] | None = None
        self.listed_at = 0.0
        self.why = ""
        """Why the connection ended."""
        self.changed = asyncio.Event()
        """Set when the server reports that its tools have changed."""
        self._server = server
        self._opened = asyncio.Event()
        self._over = asyncio.Event()
        self._wire: McpTransport | None = None
        self._client: Client | None = None
        self._task = asyncio.create_task(self._live(), name=f"mcp {server.name}")

    @property
    def over(self) -> bool:
        """Whether the connection has ended."""
        return self._over.is_set()

    async def opened(self) -> None:
        """Wait until it can be used, or raise why it cannot."""
        await self._opened.wait()
        if self._client is None:
            raise ServerDown(self.why)

    @property
    def gone(self) -> bool:
        """Whether the connection and its process have ended."""
        return self._task.done()

    async def ended(self) -> None:
        """Wait until the connection and its process have ended, for a limited time."""
        await asyncio.wait({self._task}, timeout=END_SECONDS)

    def end(self) -> None:
        """Ask the connection to end."""
        self._over.set()
        if not self._opened.is_set():
            self._task.cancel()

    async def list_tools(self) -> list[McpToolInfo]:
        """Return the tools that the server offers now."""
        self.changed.clear()
        client = self._alive()
        tools: list[Tool] = []
        cursor: str | None = None
        async with asyncio.timeout(LIST_SECONDS):
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if not cursor or len(tools) >= MAX_TOOLS:
                    break
        self.offered = [_offered(tool) for tool in tools[:MAX_TOOLS]]
        self.listed_at = asyncio.get_running_loop().time()
        return self.offered

    async def call(self, tool: str, arguments: dict[str, Any], *, seconds: float) -> CallToolResult:
        """Call it: `ServerDown` if it was not sent, `ServerRefused` if it was not done, `NoAnswer` if unknown."""
        client = self._alive()
        from mcp.shared.exceptions import MCPError

        from holdfast.runtime.mcp.transport import SENDING, Sending

        sending = Sending()
        token = SENDING.set(sending)
        try:
            async with asyncio.timeout(seconds):
                return await client.call_tool(tool, arguments)
        except TimeoutError:
            raise NoAnswer(f"it did not answer within {seconds:g} s, and the call was cancelled") from None
        except MCPError as error:
            await self._judge(error, sending)
            raise ServerRefused(self._said(error, sending)) from None
        except Exception as error:
            raise NoAnswer(f"its answer is invalid: {self._server.without_secrets(str(error))}") from error
        finally:
            SENDING.reset(token)

    async def _judge(self, error: MCPError, sending: Sending) -> None:
        """Raise what an error of the SDK means; return if the error is the server's own."""
        if error.message in GONE and sending.status == 404:
            self.end()
            raise ServerDown("it was restarted")
        if self.over:
            await self.ended()
            if sending.seen and not sending.sent:
                raise ServerDown(self.why)
            raise NoAnswer(self.why)
        if error.message.startswith(UNANSWERED) or sending.status >= 500:
            raise NoAnswer(self._said(error, sending))

    def _said(self, error: MCPError, sending: Sending) -> str:
        status = f" (HTTP status {sending.status})" if sending.status else ""
        return self._server.without_secrets(error.message) + status

    def _alive(self) -> Client:
        if self._client is None or self.over:
            raise ServerDown(self.why or "the connection ended")
        return self._client

    async def _live(self) -> None:
        """Open it, keep it open, close it; all in this task."""
        try:
            await self._import()
            from holdfast.runtime.mcp.transport import McpTransport

            self._wire = McpTransport(self._server, over=self._over, changed=self.changed)
            async with self._wire.client() as client:
                self._client = client
                self._opened.set()
                await self._over.wait()
            self.why = self._wire.explain(None)
        except ServerDown as error:
            self.why = str(error)
        except Exception as error:
            assert self._wire is not None
            self.why = self._wire.explain(error)
        except asyncio.CancelledError:
            self.why = "it was stopped"
            raise
        finally:
            self._client = None
            self._over.set()
            self._opened.set()

    async def _import(self) -> None:
        """In a thread, since it takes more than a second."""
        if not self._server.command and not self._server.url:
            raise ServerDown("config.toml names neither a command nor a url for it")
        await asyncio.to_thread(importlib.import_module, WIRE)


def _offered(tool: Tool) -> McpToolInfo:
    """Return a tool with the effect class of the server's hints; without hints it is `unsafe`."""
    hints = tool.annotations
    effect: Effect = "unsafe"
    if hints is not None and hints.read_only_hint:
        effect = "pure"
    elif hints is not None and hints.idempotent_hint:
        effect = "idempotent"
    parameters: dict[str, object] = {"type": "object", "properties": {}}
    description = tool.description or tool.title or tool.name
    if len(str(tool.input_schema)) <= SCHEMA_LENGTH:
        parameters |= tool.input_schema
    else:
        description += f" (The description of its arguments is longer than {SCHEMA_LENGTH} characters and left out.)"
    return McpToolInfo(tool.name, description, parameters, effect)
