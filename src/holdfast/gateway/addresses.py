"""Addresses: the exact origins under which browsers reach this gateway.

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
class Address:
    """What a page that came from there says of itself, and the cookie that it gets."""

    origins: frozenset[bytes]
    cookie: str
    """Browsers do not tell ports apart where cookies are concerned, so its name does: by the port they see."""
    secure: bool = False

    def set_cookie(self, value: str, seconds: int) -> str:
        """The header that gives it to a browser."""
        flags = "; Secure" if self.secure else ""
        return f"{self.cookie}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{flags}"


def addresses(port: int, public_urls: Iterable[str]) -> dict[bytes, Address]:
    """All of them, by their Host."""
    found = {_host(url): _public(url) for url in public_urls}
    hosts = [f"{name}:{port}".encode() for name in LOOPBACK]
    own = Address(frozenset(b"http://" + host for host in hosts), f"holdfast_{port}")
    return found | dict.fromkeys(hosts, own)


def _host(url: str) -> bytes:
    return urlsplit(url).netloc.encode()


def _public(url: str) -> Address:
    """`__Host-` keeps other machines of the same domain from planting a cookie; browsers want TLS for it."""
    split = urlsplit(url)
    secure = split.scheme == "https"
    name = f"holdfast_{split.port or USUAL_PORTS[split.scheme]}"
    return Address(frozenset({url.encode()}), f"__Host-{name}" if secure else name, secure)
