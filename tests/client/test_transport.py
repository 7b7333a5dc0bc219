"""HTTP of the client: whole answers, pieces, cuts, and bytes that are not HTTP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.client.errors import ClientError, ConnectionLost, GatewayNotRunning
from holdfast.client.reconnect import Disconnected, Reconnected, retry_until_reachable, wait_until_reachable
from holdfast.client.transport import ClientConnection, ProtocolError, Request
from tests.eventually import PATIENCE

GOOD = {
    "with a length": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none\ntwo\n\n",
    "in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\none\nt\r\n4\r\nwo\n\n\r\n0\r\n\r\n",
    "until the end": b"HTTP/1.0 200 OK\r\nX: y\r\n\r\none\ntwo\n\n",
}
BAD = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none",
    "half a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\none",
    "no last chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n",
    "a strange length": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    "a strange chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
}


@contextmanager
def answering(data: bytes) -> Iterator[ClientConnection]:
    """A connection to somebody who says this, whatever is asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65_536)
                client.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        with ClientConnection("127.0.0.1", server.getsockname()[1], timeout=PATIENCE) as connection:
            yield connection
        thread.join()


def test_where_nobody_listens_the_connection_is_refused() -> None:
    """And not something else later: a gateway that is gone is told from one that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        ClientConnection("127.0.0.1", port, timeout=PATIENCE)


@pytest.mark.parametrize("case", GOOD)
def test_a_whole_answer(case: str) -> None:
    with answering(GOOD[case]) as connection:
        answer = connection.send(Request("GET", "/", {}))
        assert answer.status == 200
        assert answer.body() == b"one\ntwo\n\n"
    with answering(GOOD[case]) as connection:
        assert list(connection.send(Request("GET", "/", {})).lines()) == [b"one", b"two", b""]


@pytest.mark.parametrize("case", BAD)
def test_a_cut_or_strange_answer_is_an_error(case: str) -> None:
    with answering(BAD[case]) as connection, pytest.raises(ProtocolError):
        connection.send(Request("GET", "/", {})).body()


def test_what_came_before_a_cut_is_not_lost() -> None:
    with answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\none\ntwo\nthr") as connection:
        seen: list[bytes] = []
        with pytest.raises(ProtocolError):
            seen.extend(connection.send(Request("GET", "/", {})).lines())
        assert seen == [b"one", b"two"]


def test_a_waiting_client_says_once_that_the_gateway_is_away_and_once_that_it_is_back() -> None:
    tries: list[ClientError] = [GatewayNotRunning(Path("/nowhere")), ConnectionLost("cut"), ConnectionLost("cut")]

    def ask() -> str:
        if tries:
            raise tries.pop()
        return "hello"

    assert list(retry_until_reachable(ask, patience=PATIENCE)) == [Disconnected(PATIENCE), Reconnected()]
    assert list(retry_until_reachable(ask, patience=PATIENCE)) == []
    assert wait_until_reachable(ask, patience=PATIENCE) == "hello"
