"""The guard checks every request and every WebSocket upgrade, also on loopback.

It wants an exact Host, an exact Origin if there is one, and a credential. There is no CORS and no exemption for
localhost: any page in the user's browser and any program on the machine can reach a port on loopback.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.domain.errors import HoldfastError
from holdfast.gateway import dashboard_files
from holdfast.gateway.connections import SECURITY_HEADERS, ConnectionLimits
from holdfast.gateway.devices import Devices
from holdfast.gateway.responses import error_body
from holdfast.worker_access import PATH as MCP
from holdfast.worker_access import RunToken, WorkerAccess

LOGIN = "/v1/login"
PUBLIC = frozenset({"/healthz", "/readyz", "/v1/build", LOGIN})
READING = frozenset({"GET", "HEAD"})
UNAUTHORIZED = 401
COOKIES_LOOKED_AT = 4


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused."""

    status: int
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The caller: a device with its cookie, the owner with the token, a worker, or anyone on public paths."""

    device: str = ""
    known: bool = True
    origin: ServedOrigin | None = None
    """The origin that the request was sent to."""
    worker: RunToken | None = None
    """The run of an external agent, on the path for such agents."""


ANYBODY = Visitor(known=False)


def _is_link(scope: Scope) -> bool:
    """Return whether a browser follows a link from another site to a page, which contains no data of the user."""
    if scope["type"] != "http" or scope["method"] not in READING or not dashboard_files.is_page(scope["path"]):
        return False
    expected = {b"sec-fetch-mode": b"navigate", b"sec-fetch-dest": b"document", b"content-length": b"0"}
    found = [(name, value) for name, value in scope["headers"] if name in expected or name == b"transfer-encoding"]
    names = [name for name, _ in found]
    complete = {b"sec-fetch-mode", b"sec-fetch-dest"} <= set(names) and len(set(names)) == len(names)
    return complete and all(expected.get(name) == value for name, value in found)


def _known_name(host: bytes) -> bytes:
    """Return a Host for comparison: `localhost` in any case is accepted, other names must match exactly."""
    return lower if (lower := host.lower()).startswith(b"localhost:") else host


def is_public(path: str) -> bool:
    """Return whether a path needs no credential."""
    return path in PUBLIC or dashboard_files.is_public(path)


def _wants_page(scope: Scope) -> bool:
    """Return whether a browser asks for a page, which may not exist: the dashboard says so, or asks for a sign-in."""
    accepted = [value for name, value in scope["headers"] if name == b"accept"]
    return (
        scope["method"] in READING
        and dashboard_files.is_page(scope["path"])
        and any(dashboard_files.HTML.encode() in value for value in accepted)
    )


class Guard:
    """Checks requests against the origins of this gateway, the owner's token and the devices."""

    def __init__(
        self, *, port: int, token: str, devices: Devices, workers: WorkerAccess, public_urls: Iterable[str] = ()
    ) -> None:
        self.devices = devices
        self._workers = workers
        self._origins = served_origins(port, public_urls)
        self._token = token.encode()

    def check(self, scope: Scope) -> Visitor | Refusal:
        """Decide by the headers alone. The order matters: for a foreign page no credential is checked."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        origin = self._origins.get(_known_name(hosts[0])) if len(hosts) == 1 else None
        if origin is None:
            return Refusal(
                421,
                "wrong_host",
                "This gateway does not serve that host.",
                "Use the address that `holdfast status` shows.",
            )
        pages = [value for name, value in headers if name == b"origin"]
        if any(page not in origin.pages for page in pages) or len(pages) > 1:
            return Refusal(403, "forbidden", "Requests from that origin are refused.")
        sites = [value for name, value in headers if name == b"sec-fetch-site"]
        if any(value not in (b"same-origin", b"none") for value in sites):
            if len(sites) == 1 and _is_link(scope) and not pages:
                return replace(ANYBODY, origin=origin)  # and no credential is checked
            return Refusal(403, "forbidden", "Requests from other sites are refused.")
        found = self._worker(headers) if scope["path"] == MCP else self._credential(headers, origin)
        upgrade = scope["type"] == "websocket"
        if isinstance(found, Refusal) and not upgrade and (is_public(scope["path"]) or _wants_page(scope)):
            found = ANYBODY
        by_page = isinstance(found, Visitor) and (found.device or scope["path"] == LOGIN)
        if by_page and not pages and (upgrade or scope["method"] not in READING):
            return Refusal(403, "forbidden", "A request of a browser needs an Origin header.")
        return replace(found, origin=origin) if isinstance(found, Visitor) else found

    def _worker(self, headers: list[tuple[bytes, bytes]]) -> Visitor | Refusal:
        """Return the run whose token is shown. No other credential counts here, and this one nowhere else."""
        given = [value for name, value in headers if name == b"authorization"]
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        worker = self._workers.verify(token.strip().decode("latin-1")) if scheme.lower() == b"bearer" else None
        if worker is None:
            return Refusal(
                401, "unauthorized", "This address is for agents that work on a card, with the token of their run."
            )
        return Visitor(worker=worker)

    def _credential(self, headers: list[tuple[bytes, bytes]], origin: ServedOrigin) -> Visitor | Refusal:
        hint = "Send `Authorization: Bearer TOKEN` (run/token of the home); for a browser `holdfast open` signs in."
        given = [value for name, value in headers if name == b"authorization"]
        if not given and (device := self._device(headers, origin)) is not None:
            return Visitor(device)
        if len(given) != 1:
            return Refusal(401, "unauthorized", "A credential is needed.", hint)
        scheme, _, token = given[0].partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            return Refusal(401, "unauthorized", "The credential is wrong.", hint)
        return Visitor()

    def _device(self, headers: list[tuple[bytes, bytes]], origin: ServedOrigin) -> str | None:
        """Return the device by its cookie. Other programs on this machine can set such cookies, so try a few."""
        found = (self.devices.who(value) for value in _cookies(headers, origin)[:COOKIES_LOOKED_AT])
        return next((device for device in found if device is not None), None)

    def has_cookie(self, scope: Scope) -> bool:
        """Return whether a request has a cookie of ours, known or not."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        origin = self._origins.get(_known_name(hosts[0])) if hosts else None
        return origin is not None and bool(_cookies(headers, origin))


def _cookies(headers: list[tuple[bytes, bytes]], origin: ServedOrigin) -> list[bytes]:
    """Return the values of the cookies with the name that an origin has."""
    name = f"{origin.cookie}=".encode()
    crumbs = [crumb.strip() for header, value in headers if header == b"cookie" for crumb in value.split(b";")]
    return [crumb.removeprefix(name) for crumb in crumbs if crumb.startswith(name)]


class GuardMiddleware:
    """Refuses requests before anything else runs."""

    def __init__(self, app: ASGIApp, guard: Guard, limits: ConnectionLimits) -> None:
        self._app = app
        self._guard = guard
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        found = self._guard.check(scope)
        if isinstance(found, Refusal) and found.status == UNAUTHORIZED and self._guard.has_cookie(scope):
            with suppress(HoldfastError):
                await self._guard.devices.refresh()  # another gateway may have signed it in a moment ago
            found = self._guard.check(scope)
        if isinstance(found, Refusal):
            await _refuse(scope, receive, send, found)
            return
        if found.known:
            self._limits.identified(tuple(scope["client"]))
        scope["device"], scope["origin"], scope["worker"] = found.device, found.origin, found.worker
        scope["known"] = found.known
        scope["identified"] = partial(
            self._limits.identified, tuple(scope["client"])
        )  # called when a sign-in code is right
        if found.device:
            self._guard.devices.mark_used(found.device)
            send = self._while_known(scope, receive, send)
        await self._app(scope, receive, send)
        if found.device and self._guard.devices.knows(found.device):
            self._guard.devices.mark_used(found.device)  # it may have followed a stream for hours

    def _while_known(self, scope: Scope, receive: Receive, send: Send) -> Send:
        """Return a `send` that refuses a device which was revoked after its request began."""
        refused = False

        async def checked(message: Message) -> None:
            nonlocal refused
            begins = message["type"] == "http.response.start"
            if begins and scope["device"] and not self._guard.devices.knows(scope["device"]):
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
        if dashboard_files.is_public(scope["path"]):
            headers.append((b"cache-control", b"no-store"))
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ServedOrigin:
    """An exact origin under which browsers reach this gateway.

    There is one on loopback and one for each of `[gateway] public_urls`, which a TLS proxy or a tailnet serves. The
    Host of a request says which one was used; nothing that a proxy adds (`X-Forwarded-…`) is trusted.
    """

    pages: frozenset[bytes]
    """What pages that were loaded from there send as `Origin`."""
    cookie: str
    """The name of its cookie. It contains the port, since browsers share cookies between ports."""
    secure: bool = False
    is_local: bool = False
    """Whether only programs of this machine reach it."""

    def set_cookie(self, value: str, seconds: int) -> str:
        """Return the value of a Set-Cookie header."""
        flags = "; Secure" if self.secure else ""
        return f"{self.cookie}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{flags}"


def served_origins(port: int, public_urls: Iterable[str]) -> dict[bytes, ServedOrigin]:
    """Return all origins of this gateway by Host."""
    found = {_host(url): _public(url) for url in public_urls}
    hosts = [f"{name}:{port}".encode() for name in LOOPBACK]
    own = ServedOrigin(frozenset(b"http://" + host for host in hosts), f"holdfast_{port}", is_local=True)
    return found | dict.fromkeys(hosts, own)


def _host(url: str) -> bytes:
    return urlsplit(url).netloc.encode()


def _public(url: str) -> ServedOrigin:
    """Return the origin of a public URL. `__Host-` (TLS only) keeps other hosts of the domain from setting cookies."""
    split = urlsplit(url)
    secure = split.scheme == "https"
    name = f"holdfast_{split.port or USUAL_PORTS[split.scheme]}"
    return ServedOrigin(frozenset({url.encode()}), f"__Host-{name}" if secure else name, secure)
