"""The tools of the board over MCP, at `/mcp`, for external agents that work on a card.

Stateless, with JSON answers: nothing of a conversation lives here, so an agent that called the last gateway calls this
one without noticing. The guard has checked the token of the run before (`guard.py`). The SDK takes more than a second
to import, which happens in a thread: at the start if a profile has an external agent, else with the first request.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from holdfast import __version__
from holdfast.board.worker_calls import WorkerCalls
from holdfast.gateway.responses import error_response
from holdfast.worker_access import SERVER, RunToken, WorkerAccess

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

BODY_BYTES = 1 << 20
READY_SECONDS = 60.0
"""How long a call waits for a gateway that is starting."""
INSTRUCTIONS = (
    "You work on a card of a board. End your work with kanban_complete when it is done, or with kanban_block when you "
    "need a person. kanban_show shows your card with its comments."
)
ALWAYS_LOADED = {"anthropic/alwaysLoad": True}
"""Claude Code hides the tools of a server behind a search for tools unless each of them says this."""


class McpEndpoint:
    """Answers the requests of external workers; started with the first one."""

    def __init__(self, calls: WorkerCalls, access: WorkerAccess, recovered: asyncio.Event) -> None:
        self._calls = calls
        self._access = access
        self._recovered = recovered
        self._serving: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Until the gateway has found out what its last run left open, it waits."""
        if scope["method"] != "POST":  # a GET would be a stream without an end, on which some agents hang
            refused = error_response(405, "method_not_allowed", "Only POST is served here.")
            refused.headers["allow"] = "POST"
            await refused(scope, receive, send)
            return
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._recovered.wait()
                manager = await self._manager()
        except TimeoutError:
            refused = error_response(503, "not_ready", "The gateway is starting.", hint="Try again.", retry_after=5)
            await refused(scope, receive, send)
            return
        await manager.handle_request(scope, receive, send)

    async def warm_up(self) -> None:
        """Import the SDK before an agent waits for it: some ask their model before their tools have come."""
        await self._manager()

    async def close(self) -> None:
        """End what still runs."""
        self._closing.set()
        if self._serving is not None:
            await asyncio.gather(self._serving, return_exceptions=True)

    async def _manager(self) -> StreamableHTTPSessionManager:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._ready))
        return await asyncio.shield(self._ready)

    async def _serve(self, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        try:
            manager = await asyncio.to_thread(_session_manager, self._calls, self._access)
            async with manager.run():
                ready.set_result(manager)
                await self._closing.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)


def _session_manager(calls: WorkerCalls, access: WorkerAccess) -> StreamableHTTPSessionManager:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

    async def list_tools(context: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        access.mark_listed(_worker(context))
        tools = [
            Tool(name=spec.name, description=spec.description, input_schema=spec.parameters, _meta=ALWAYS_LOADED)
            for spec in calls.specs
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        result = await calls.call(_worker(context), params.name, json.dumps(params.arguments or {}))
        return CallToolResult(
            content=[TextContent(type="text", text=result.output)], is_error=result.outcome == "failed"
        )

    server: Server[Any] = Server(
        SERVER, version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )
    return StreamableHTTPSessionManager(server, stateless=True, json_response=True, max_request_body_size=BODY_BYTES)


def _worker(context: ServerRequestContext[Any, Any]) -> RunToken:
    """Return the run whose token the guard has checked."""
    assert context.request is not None
    worker: RunToken = context.request.scope["worker"]
    return worker
