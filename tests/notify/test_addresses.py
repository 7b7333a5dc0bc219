"""Only public addresses are connected to, however they are written."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import Any

import pytest

from holdfast.notify.addresses import PrivateAddress, PublicNetwork, failure_words, is_public

PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
    *("::1", "::", "fe80::1", "fc00::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "2002:a00:1::", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
    *("::127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "3fff::1", "5f00::1", "192.0.0.8", "240.0.0.1", "255.255.255.255"),
    "2001:0:0:0:0:0:80ff:fffe",  # a Teredo address that carries 127.0.0.1
]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::5db8:d822"])
def test_a_public_address(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("answers", [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["fe80::1%eth0"]])
async def test_a_name_with_a_private_address_is_refused(answers: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answer, 443)) for answer in answers]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    with pytest.raises(PrivateAddress, match="is not a public address"):
        await PublicNetwork().connect_tcp("example.com", 443)


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f000001", "2130706433", "[::1]".strip("[]")])
async def test_other_ways_to_write_this_machine(host: str) -> None:
    with pytest.raises((PrivateAddress, socket.gaierror)):
        await PublicNetwork().connect_tcp(host, 9)


def test_a_failed_connection_is_reported_without_its_errno() -> None:
    assert failure_words(OSError(-2, "Name or service not known")) == "Name or service not known"
    assert failure_words(TimeoutError()) == "TimeoutError"
