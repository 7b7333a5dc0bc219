"""The guard: every request and every upgrade passes here, loopback included.

Exact Host, exact Origin where there is one, a credential. No CORS, no exemption for localhost: any
page in the user's browser and any program on the machine can reach a port on loopback.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from holdfast import __version__
from holdfast.gateway import site
from holdfast.gateway.addresses import Address, addresses
from holdfast.gateway.devices import Devices
from holdfast.gateway.responses import error_body

LOGIN = "/v1/login"
PUBLIC = frozenset({"/healthz", "/v1/build", LOGIN})
READING = frozenset({"GET", "HEAD"})
COOKIES_LOOKED_AT = 4
MAX_CONNECTIONS = 1_200
RESERVED_FILES = 256
"""Files that are not connections: the database, output of commands, models, tools."""
MAX_STRANGERS = 16
STRANGER_SECONDS = 5.0
SILENT_SECONDS = 0.25
"""So long a new connection is nobody yet: many friends may come at once, and their heads take a moment."""
HEAD_LIMIT = 64 * 1024
WRITE_BUFFER_BYTES = 64 * 1024
"""With more than this unsent, whoever writes waits."""
TOO_MANY = b"503 Service Unavailable\r\nretry-after: 1"
Client = tuple[str, int]
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
SITE_HEADERS = [header for header in SECURITY_HEADERS if header[0] != b"cache-control"]
"""The page's files say themselves how long they may be kept."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why somebody does not get in."""

    status: int
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who gets in: a device by its cookie, the owner by the token, or anybody where that is enough."""

    device: str = ""
    known: bool = True
    address: Address | None = None
    """Where it came in."""


ANYBODY = Visitor(known=False)


def _is_link(scope: Scope) -> bool:
    """Whether somebody follows a link to a page: its shell holds nothing of the owner's, and asks from here on."""
    if scope["type"] != "http" or scope["method"] not in READING or not site.is_page(scope["path"]):
        return False
    told = {b"sec-fetch-mode": b"navigate", b"sec-fetch-dest": b"document", b"content-length": b"0"}
    found = [(name, value) for name, value in scope["headers"] if name in told or name == b"transfer-encoding"]
    names = [name for name, _ in found]
    asked = {b"sec-fetch-mode", b"sec-fetch-dest"} <= set(names) and len(set(names)) == len(names)
    return asked and all(told.get(name) == value for name, value in found)


def _known_name(host: bytes) -> bytes:
    """Our own names are the same in capitals; browsers write those of others as they are set."""
    return lower if (lower := host.lower()).startswith(b"localhost:") else host


def is_public(path: str) -> bool:
    """Whether no credential is needed there."""
    return path in PUBLIC or site.is_public(path)


class Guard:
    """Knows its own addresses, the owner's token and the devices, and who has not shown a credential yet."""

    def __init__(
        self, *, port: int, token: str, devices: Devices, open_files: int, public_urls: Iterable[str] = ()
    ) -> None:
        self._devices = devices
        self.max_connections = max(MAX_STRANGERS, min(MAX_CONNECTIONS, open_files - RESERVED_FILES))
        self._addresses = addresses(port, public_urls)
        self._token = token.encode()
        self._strangers: dict[Client, asyncio.TimerHandle] = {}
        self._counted: set[Client] = set()

    def check(self, scope: Scope) -> Visitor | Refusal:
        """Decide on headers alone. The order matters: no credential is looked at for a foreign page."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        address = self._addresses.get(_known_name(hosts[0])) if len(hosts) == 1 else None
        if address is None:
            return Refusal(421, "wrong_host", "This gateway does not serve that host.", "Use its own address.")
        origins = [value for name, value in headers if name == b"origin"]
        if any(origin not in address.origins for origin in origins) or len(origins) > 1:
            return Refusal(403, "forbidden", "Requests from that origin are refused.")
        sites = [value for name, value in headers if name == b"sec-fetch-site"]
        if any(value not in (b"same-origin", b"none") for value in sites):
            if len(sites) == 1 and _is_link(scope) and not origins:
                return replace(ANYBODY, address=address)  # and no credential is looked at
            return Refusal(403, "forbidden", "Requests from other sites are refused.")
        found = self._credential(headers, address)
        upgrade = scope["type"] == "websocket"
        if not upgrade and is_public(scope["path"]):
            found = found if isinstance(found, Visitor) else ANYBODY
        by_page = isinstance(found, Visitor) and (found.device or scope["path"] == LOGIN)
        if by_page and not origins and (upgrade or scope["method"] not in READING):
            return Refusal(403, "forbidden", "A browser must say which page this comes from (Origin).")
        return replace(found, address=address) if isinstance(found, Visitor) else found

    def _credential(self, headers: list[tuple[bytes, bytes]], address: Address) -> Visitor | Refusal:
        hint = "Send `Authorization: Bearer TOKEN` (run/token of the home); for a browser `holdfast open` signs in."
        given = [value for name, value in headers if name == b"authorization"]
        if not given and (device := self._device(headers, address)) is not None:
            return Visitor(device)
        if len(given) != 1:
            return Refusal(401, "unauthorized", "A credential is needed.", hint)
        scheme, _, token = given[0].partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            return Refusal(401, "unauthorized", "That credential is wrong.", hint)
        return Visitor()

    def _device(self, headers: list[tuple[bytes, bytes]], address: Address) -> str | None:
        """By a cookie of our name. Other programs on this machine can set one too, so the first need not be it."""
        name = f"{address.cookie}=".encode()
        crumbs = [crumb.strip() for header, value in headers if header == b"cookie" for crumb in value.split(b";")]
        ours = [crumb.removeprefix(name) for crumb in crumbs if crumb.startswith(name)]
        found = (self._devices.who(value) for value in ours[:COOKIES_LOOKED_AT])
        return next((device for device in found if device is not None), None)

    def knows(self, device: str) -> bool:
        """Whether its cookie still counts."""
        return self._devices.knows(device)

    def seen(self, device: str) -> None:
        """It was here."""
        self._devices.came(device)

    # --- strangers: connections that have not shown a credential yet --------------------------------

    def came(self, client: Client, door: Door) -> None:
        """A new connection."""
        timer = asyncio.get_running_loop().call_later(SILENT_SECONDS, self._silent, client, door)
        self._strangers[client] = timer

    def left(self, client: Client) -> None:
        """It showed its credential, or went away."""
        timer = self._strangers.pop(client, None)
        if timer is not None:
            timer.cancel()
        self._counted.discard(client)

    def _silent(self, client: Client, door: Door) -> None:
        """It is a stranger. It has a few seconds, unless there are too many of its kind."""
        if len(self._counted) >= MAX_STRANGERS:
            self.left(client)
            door.turn_away(TOO_MANY)
            return
        self._counted.add(client)
        left = STRANGER_SECONDS - SILENT_SECONDS
        self._strangers[client] = asyncio.get_running_loop().call_later(left, door.transport.close)


class GuardMiddleware:
    """Refuses before anything else runs."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then pass on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        found = self._guard.check(scope)
        if isinstance(found, Refusal):
            await _refuse(scope, receive, send, found)
            return
        if found.known:
            self._guard.left(tuple(scope["client"]))
        scope["device"], scope["address"] = found.device, found.address
        scope["identified"] = partial(self._guard.left, tuple(scope["client"]))  # for whoever shows a right code
        if found.device:
            self._guard.seen(found.device)
            send = self._while_known(scope, receive, send)
        await self._app(scope, receive, send)
        if found.device and self._guard.knows(found.device):
            self._guard.seen(found.device)  # it may have followed something for hours

    def _while_known(self, scope: Scope, receive: Receive, send: Send) -> Send:
        """Who asked long ago and was revoked meanwhile gets a refusal for an answer."""
        refused = False

        async def checked(message: Message) -> None:
            nonlocal refused
            begins = message["type"] == "http.response.start"
            if begins and scope["device"] and not self._guard.knows(scope["device"]):
                refused = True
                await _refuse(scope, receive, send, Refusal(401, "unauthorized", "This device was revoked."))
            elif not refused:
                await send(message)

        return checked


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    body = error_body(refusal.code, refusal.message, refusal.hint)
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(body)).encode()))
    if scope["type"] == "websocket":
        await receive()
        kind = "websocket.http.response"
        headers += SECURITY_HEADERS  # the server adds them to every other answer
    else:
        kind = "http.response"
        if site.is_public(scope["path"]):
            headers.append((b"cache-control", b"no-store"))
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


class Socket(WebSocketsSansIOProtocol):
    """A WebSocket connection that streams can wait for."""

    async def ready(self) -> None:
        """Return when it takes more."""
        await self.writable.wait()

    def handle_connect(self, event: Request) -> None:
        """The application is called with a scope that names its connection."""
        super().handle_connect(event)
        if self.handshake_initiated and not self.close_sent:
            self.scope["connection"] = self  # type: ignore[typeddict-unknown-key]


class Door(HttpToolsProtocol):
    """A connection: counted from its first byte, and cut when it does not show a credential in time."""

    def __init__(self, guard: Guard, **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self._guard = guard
        self._head: int | None = None
        """How much of a request's head has come, while it is not complete."""

    async def ready(self) -> None:
        """Return when it takes more."""
        await self.flow.drain()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let in, or turn away at the door."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        if len(self.connections) > self._guard.max_connections or self.client is None:
            self.turn_away(TOO_MANY)
        else:
            self._guard.came(self.client, self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone."""
        self._leave()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """From here on it is a socket's connection: the guard lets it in or closes it."""
        self._leave()
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is here."""
        self._head = None
        self.scope["connection"] = self  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()
        if site.is_public(self.scope.get("path", "")):  # an upgrade has none yet
            self.cycle.default_headers = SITE_HEADERS

    def data_received(self, data: bytes) -> None:
        """Read on, but no head without an end."""
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD_LIMIT and not self.transport.is_closing():
                self.turn_away(b"431 Request Header Fields Too Large")

    def turn_away(self, status: bytes) -> None:
        """Close it, and say why."""
        headers = b"".join(b"%b: %b\r\n" % header for header in SECURITY_HEADERS)
        self.transport.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n%b\r\n" % (status, headers))
        self.transport.close()

    def _leave(self) -> None:
        if self.client is not None:
            self._guard.left(self.client)
