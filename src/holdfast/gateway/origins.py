"""The exact origins under which browsers reach this gateway.

Its own on loopback, and those of `[gateway] public_urls`, which a TLS proxy or a tailnet serves. The Host of
a request says which of them was used; nothing that a proxy adds (`X-Forwarded-…`) is believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ServedOrigin:
    """What pages that were loaded from there send as `Origin`, and the cookie that they get."""

    pages: frozenset[bytes]
    cookie: str
    """Browsers do not tell ports apart where cookies are concerned, so its name does: by the port they see."""
    secure: bool = False

    def set_cookie(self, value: str, seconds: int) -> str:
        """The header that gives it to a browser."""
        flags = "; Secure" if self.secure else ""
        return f"{self.cookie}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{flags}"


def served_origins(port: int, public_urls: Iterable[str]) -> dict[bytes, ServedOrigin]:
    """Return all of them, by their Host."""
    found = {_host(url): _public(url) for url in public_urls}
    hosts = [f"{name}:{port}".encode() for name in LOOPBACK]
    own = ServedOrigin(frozenset(b"http://" + host for host in hosts), f"holdfast_{port}")
    return found | dict.fromkeys(hosts, own)


def _host(url: str) -> bytes:
    return urlsplit(url).netloc.encode()


def _public(url: str) -> ServedOrigin:
    """`__Host-` keeps other machines of the same domain from planting a cookie; browsers want TLS for it."""
    split = urlsplit(url)
    secure = split.scheme == "https"
    name = f"holdfast_{split.port or USUAL_PORTS[split.scheme]}"
    return ServedOrigin(frozenset({url.encode()}), f"__Host-{name}" if secure else name, secure)
