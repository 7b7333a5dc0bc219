"""The gateway as an ASGI application behind its guard, the server that runs it, and its log file."""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import socket
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from holdfast.gateway.connections import SECURITY_HEADERS, ConnectionLimits, HttpConnection, WebSocketConnection
from holdfast.gateway.guard import Guard, GuardMiddleware
from holdfast.gateway.mcp_server import McpEndpoint
from holdfast.gateway.responses import ERROR_HANDLERS
from holdfast.gateway.routes import (
    admin,
    agents,
    cards,
    chapters,
    devices,
    events,
    nodes,
    notify,
    push,
    sessions,
    settings,
    system,
    task_starts,
    tasks,
    telegram,
    waits,
)
from holdfast.gateway.state import Gateway
from holdfast.worker_access import PATH as MCP

LOG_FILES = 5
FRAME_LIMIT = 1024 * 1024
GRACE_SECONDS = 1
BACKLOG = 2048
SEND_BYTES = 64 * 1024
"""Size of the kernel's send buffer for one client; the kernel doubles it. By default it grows to megabytes."""
PARTS = tuple(
    module.routes
    for module in (
        events,
        sessions,
        chapters,
        cards,
        task_starts,
        tasks,
        waits,
        devices,
        nodes,
        notify,
        push,
        telegram,
        agents,
        settings,
        admin,
        system,
    )
)
"""All routes; the first that matches a path is used."""


def build(gateway: Gateway) -> Starlette:
    """Return the application without its guard."""
    routes = [route for part in PARTS for route in part.routes]
    mcp = McpEndpoint(gateway.worker_calls, gateway.worker_access, gateway.recovered)
    app = Starlette(routes=[Route(MCP, mcp), *routes, *events.SOCKETS], exception_handlers=ERROR_HANDLERS)
    app.router.redirect_slashes = False
    app.state.gateway, app.state.parts, app.state.mcp = gateway, PARTS, mcp
    return app


class Server(uvicorn.Server):
    """Uvicorn without its periodic timer and its signal handlers: it runs until the gateway shuts down."""

    def __init__(self, gateway: Gateway, guard: Guard, limits: ConnectionLimits) -> None:
        self._gateway = gateway
        app = build(gateway)
        self._mcp: McpEndpoint = app.state.mcp
        config = uvicorn.Config(
            GuardMiddleware(app, guard, limits),
            http=partial(HttpConnection, limits),  # type: ignore[arg-type]
            ws=WebSocketConnection,
            ws_max_size=FRAME_LIMIT,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        super().__init__(config)
        self.server_state.default_headers = SECURITY_HEADERS  # on every answer, uvicorn's own included

    async def warm_up(self) -> None:
        """Get ready for external agents, if a profile has one."""
        profiles = self._gateway.profiles.settings.profiles.values()
        if any(profile.driver_name != "builtin" for profile in profiles):
            await self._mcp.warm_up()

    async def main_loop(self) -> None:
        """Wait for the shutdown, then end the streams."""
        await self._gateway.shutdown.wait()
        for server in self.servers:
            server.close()
        await self._gateway.streams.close()
        await self._mcp.close()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the application handles signals."""
        yield


def listen(port: int, *, unread_seconds: float) -> socket.socket:
    """Return a socket on loopback. The kernel disconnects clients that do not read for too long.

    The protocol is named because only then does asyncio turn off Nagle's algorithm (40 ms per response).
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(unread_seconds * 1000))
    try:
        bound.bind(("127.0.0.1", port))
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger and message, and the traceback of an error."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "at": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if hint := getattr(record, "hint", ""):
            line["hint"] = hint
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def start_logging(path: Path, size: int) -> None:
    """Log our own messages from INFO on and warnings of libraries, into files that are rotated."""
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=size, backupCount=LOG_FILES, encoding="utf-8")
    handler.setFormatter(JsonLines())
    logging.raiseExceptions = False  # a log that cannot be written, on a full disk, must not fill stderr with traces
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("holdfast").setLevel(logging.INFO)
