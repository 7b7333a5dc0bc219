"""Limits of connections: how many there may be, and how long one may stay without a credential.

Uvicorn has limits of its own, but none that treats connections without a credential differently.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from holdfast import __version__
from holdfast.gateway import dashboard_files
from holdfast.timings import USUAL, GatewayTimings

MAX_CONNECTIONS = 1_200
RESERVED_FILES = 256
"""Open files that are not connections: the database, outputs of commands, models, tools."""
MAX_UNAUTHENTICATED = 16
HEAD_LIMIT = 64 * 1024
WRITE_BUFFER_BYTES = 64 * 1024
"""Writers wait while more than this is unsent."""
TOO_MANY = b"503 Service Unavailable\r\nretry-after: 1"
ClientAddress = tuple[str, int]
SECURITY_HEADERS = [
    (b"holdfast-version", __version__.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'; form-action 'self'",
    ),
]
PAGE_HEADERS = [header for header in SECURITY_HEADERS if header[0] != b"cache-control"]
"""The dashboard's files have cache headers of their own."""


class ConnectionLimits:
    """Counts the connections without a credential, and closes those that do not send one in time."""

    def __init__(self, *, open_files: int, timings: GatewayTimings = USUAL.gateway) -> None:
        self._timings = timings
        self.max_connections = max(MAX_UNAUTHENTICATED, min(MAX_CONNECTIONS, open_files - RESERVED_FILES))
        self._timers: dict[ClientAddress, asyncio.TimerHandle] = {}
        self._counted: set[ClientAddress] = set()

    def opened(self, client: ClientAddress, connection: HttpConnection) -> None:
        """Start the time limit for its credential."""
        timer = asyncio.get_running_loop().call_later(self._timings.uncounted, self._count, client, connection)
        self._timers[client] = timer

    def identified(self, client: ClientAddress) -> None:
        """Stop the time limit: the connection sent a credential, or was closed."""
        timer = self._timers.pop(client, None)
        if timer is not None:
            timer.cancel()
        self._counted.discard(client)

    def _count(self, client: ClientAddress, connection: HttpConnection) -> None:
        """Count the connection and close it after a few seconds; at once if there are too many."""
        if len(self._counted) >= MAX_UNAUTHENTICATED:
            self.identified(client)
            connection.reject(TOO_MANY)
            return
        self._counted.add(client)
        left = self._timings.unauthenticated - self._timings.uncounted
        self._timers[client] = asyncio.get_running_loop().call_later(left, connection.transport.close)


class WebSocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket connection that streams can wait for."""

    async def ready(self) -> None:
        """Wait until more can be written."""
        await self.writable.wait()

    def handle_connect(self, event: Request) -> None:
        """Put the connection into the scope of the request."""
        super().handle_connect(event)
        if self.handshake_initiated and not self.close_sent:
            self.scope["connection"] = self  # type: ignore[typeddict-unknown-key]


class HttpConnection(HttpToolsProtocol):
    """A connection that is counted, and closed when it does not send a credential in time."""

    def __init__(self, limits: ConnectionLimits, **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self._limits = limits
        self._head: int | None = None
        """Bytes of the request's head so far, while it is not complete."""

    async def ready(self) -> None:
        """Wait until more can be written."""
        await self.flow.drain()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        if len(self.connections) > self._limits.max_connections or self.client is None:
            self.reject(TOO_MANY)
        else:
            self._limits.opened(self.client, self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._uncount()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Stop counting: the guard accepts or closes the WebSocket."""
        self._uncount()
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        """Begin to count the bytes of a request's head."""
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Put the connection into the scope; the dashboard's files get other headers."""
        self._head = None
        self.scope["connection"] = self  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()
        if dashboard_files.is_public(self.scope.get("path", "")):  # an upgrade has none yet
            self.cycle.default_headers = PAGE_HEADERS

    def data_received(self, data: bytes) -> None:
        """Read; refuse a head that is too long."""
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD_LIMIT and not self.transport.is_closing():
                self.reject(b"431 Request Header Fields Too Large")

    def reject(self, status: bytes) -> None:
        """Close the connection with this status."""
        headers = b"".join(b"%b: %b\r\n" % header for header in SECURITY_HEADERS)
        self.transport.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n%b\r\n" % (status, headers))
        self.transport.close()

    def _uncount(self) -> None:
        if self.client is not None:
            self._limits.identified(self.client)
