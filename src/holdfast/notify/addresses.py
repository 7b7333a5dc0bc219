"""Connections to addresses that somebody wrote into the settings or that a browser gave us.

By default only to public addresses: a name is resolved once, every address that it has is checked, and the connection
is made to the checked one, so that a name which changes its mind in between gains nothing.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from httpcore2 import SOCKET_OPTION, AnyIOBackend, AsyncConnectionPool, AsyncNetworkBackend, AsyncNetworkStream

NAT64 = IPv6Network("64:ff9b::/96")
UNICAST = IPv6Network("2000::/3")
"""All that was given out of IPv6 for everybody. What Python calls global besides it is local or has no use yet."""
EXAMPLES = IPv6Network("3fff::/20")
PROTOCOLS = IPv4Network("192.0.0.0/24")


class PrivateAddress(OSError):
    """A name leads to this machine or to a private network."""


def failure_words(error: Exception) -> str:
    """Return why a connection failed, without the number that the system has for it."""
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether everybody on the internet means the same by it; also what it carries inside of it is looked at."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and address not in PROTOCOLS
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    carried = address.sixtofour or (address.teredo or (None, None))[1]
    if carried is not None and not is_public(carried):
        return False
    return address in UNICAST and address.is_global and address not in EXAMPLES


class PublicNetwork(AsyncNetworkBackend):
    """Connects to public addresses only."""

    def __init__(self) -> None:
        self._inner = AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the interface of httpcore2
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """Connect to the first address of the host, if all of them are public."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(place[0]) for *_, place in found]
        for address in addresses:
            if not is_public(ip_address(address.partition("%")[0])):
                raise PrivateAddress(f"{host} is {address}, which is not a public address")
        return await self._inner.connect_tcp(
            addresses[0], port, timeout=timeout, local_address=local_address, socket_options=socket_options
        )


def connection_pool(*, allow_private: bool) -> AsyncConnectionPool:
    """Return connections that are kept for a while. Redirects are not followed, and no proxy is used."""
    return AsyncConnectionPool(
        max_connections=4, keepalive_expiry=30.0, network_backend=None if allow_private else PublicNetwork()
    )
