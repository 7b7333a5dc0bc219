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
"""What the SDK says in the server's place when its answer broke off, or is none."""
LIST_SECONDS = 30.0
END_SECONDS = 10.0
MAX_PAGES = 100
MAX_TOOLS = 500
SCHEMA_LENGTH = 50_000
"""Every request to the model carries it."""
WIRE = "holdfast.runtime.mcp.transport"
GONE = {"Session terminated", "Session not found", "Not Found: Session has been terminated"}
"""What an HTTP server says that was started anew: it does not know us any more, and has done nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server as config.toml names it: a command, or a URL. Only its name is safe to be shown."""

    name: str
    command: list[str] = field(default_factory=list, repr=False)
    url: str = field(default="", repr=False)
    env: dict[str, str] = field(default_factory=dict, repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    secrets: Secrets = field(init=False, repr=False, compare=False)
    """What it was given, but for what only says where something is."""

    def __post_init__(self) -> None:
        sent = {name: value.partition(" ")[2] or value for name, value in self.headers.items()}  # without "Bearer"
        given = {**self.env, **sent, f"the url of {self.name}": self.url}
        secrets = Secrets({name: value for name, value in given.items() if not is_path(value)})
        object.__setattr__(self, "secrets", secrets)

    def without_secrets(self, text: str) -> str:
        """A message of the server, or about it, that may be shown."""
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
    """The server says that it did not do it."""


class NoAnswer(Exception):
    """The call was sent, and nobody knows what came of it."""


class McpConnection:
    """A connection from its first moment on; it is never opened twice."""

    def __init__(self, server: McpServer) -> None:
        self.offered: list[McpToolInfo] | None = None
        self.listed_at = 0.0
        self.why = ""
        """Why it is over."""
        self.changed = asyncio.Event()
        """The server said that it offers other tools now."""
        self._server = server
        self._opened = asyncio.Event()
        self._over = asyncio.Event()
        self._wire: McpTransport | None = None
        self._client: Client | None = None
        self._task = asyncio.create_task(self._live(), name=f"mcp {server.name}")

    @property
    def over(self) -> bool:
        """Whether nothing can come from it any more."""
        return self._over.is_set()

    async def opened(self) -> None:
        """Wait until it can be used, or raise why it cannot."""
        await self._opened.wait()
        if self._client is None:
            raise ServerDown(self.why)

    @property
    def gone(self) -> bool:
        """Whether all of it is gone, also its process."""
        return self._task.done()

    async def ended(self) -> None:
        """Wait until all of it is gone, or stop waiting."""
        await asyncio.wait({self._task}, timeout=END_SECONDS)

    def end(self) -> None:
        """Let it come to its end."""
        self._over.set()
        if not self._opened.is_set():
            self._task.cancel()

    async def list_tools(self) -> list[McpToolInfo]:
        """What the server offers now."""
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
        """Call it: `ServerDown` if it was not sent, `ServerRefused` if it was not done, `NoAnswer` if nobody knows."""
        client = self._alive()
        from mcp.shared.exceptions import MCPError

        from holdfast.runtime.mcp.transport import SENDING, Sending

        sending = Sending()
        token = SENDING.set(sending)
        try:
            async with asyncio.timeout(seconds):
                return await client.call_tool(tool, arguments)
        except TimeoutError:
            raise NoAnswer(f"it did not answer within {seconds:g} s and was told to stop") from None
        except MCPError as error:
            await self._judge(error, sending)
            raise ServerRefused(self._said(error, sending)) from None
        except Exception as error:
            raise NoAnswer(f"its answer is out of order: {self._server.without_secrets(str(error))}") from error
        finally:
            SENDING.reset(token)

    async def _judge(self, error: MCPError, sending: Sending) -> None:
        """Raise what the error really means; return if it is the server's own word."""
        if error.message in GONE and sending.status == 404:
            self.end()
            raise ServerDown("it was started anew")
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
            raise ServerDown(self.why or "it went away")
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
        try:
            await asyncio.to_thread(importlib.import_module, WIRE)
        except ImportError as error:
            raise ServerDown(f"MCP is not installed ({error}); pip install 'holdfast[mcp]'") from error


def _offered(tool: Tool) -> McpToolInfo:
    """Its hints are taken at their word; without any, its effect is not to be repeated."""
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
