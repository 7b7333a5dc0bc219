"""Child: clients that only read, on plain sockets, so that the client is not what is measured.

{"replay": port, "request": …, "until": suffix} connects, asks, reads up to the suffix, and answers the seconds.
{"open": n, "port": …, "request": …} keeps n more connections; {"await": suffix} answers when all of them have it.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from typing import Any

CHUNK = 1 << 18


def connect(port: int, request: str) -> socket.socket:
    """Connect and ask."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(request.encode())
    return connection


def replay(port: int, request: str, until: bytes) -> tuple[float, int]:
    """Seconds from the first packet to the last byte, and how many bytes there were."""
    started, size, end = time.monotonic(), 0, b""
    with connect(port, request) as connection:
        while not end.endswith(until):
            piece = connection.recv(CHUNK)
            if not piece:
                raise ConnectionError(f"cut after {size} bytes: {end!r}")
            size += len(piece)
            end = (end + piece)[-len(until) :] if len(piece) < len(until) else piece[-len(until) :]
    return time.monotonic() - started, size


class Audience:
    """Connections that are kept."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._ends: dict[socket.socket, bytes] = {}

    def open(self, count: int, port: int, request: str) -> None:
        """One after the other; each is in when the server has switched protocols."""
        for _ in range(count):
            connection = connect(port, request)
            answer = b""
            while b"\r\n\r\n" not in answer:
                piece = connection.recv(CHUNK)
                answer += piece
                if not piece or not b"HTTP/1.1 101".startswith(answer[:12]):
                    raise ConnectionError(f"refused: {answer!r}")
            connection.setblocking(False)
            self._ends[connection] = answer.partition(b"\r\n\r\n")[2]
            self._selector.register(connection, selectors.EVENT_READ)

    def wait(self, until: bytes) -> float:
        """When the last of them had it."""
        missing = {connection for connection, end in self._ends.items() if not end.endswith(until)}
        while missing:
            for key, _ in self._selector.select():
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                piece = connection.recv(CHUNK)
                if not piece:
                    raise ConnectionError("the server cut a reader")
                self._ends[connection] = (self._ends[connection] + piece[-len(until) :])[-len(until) :]
                if self._ends[connection].endswith(until):
                    missing.discard(connection)
        return time.monotonic()


def main() -> None:
    """Answer until the input ends."""
    audience = Audience()
    tell({"ready": True})
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if "replay" in message:
            seconds, size = replay(message["replay"], message["request"], message["until"].encode())
            tell({"seconds": seconds, "bytes": size})
        elif "open" in message:
            audience.open(message["open"], message["port"], message["request"])
            tell({"opened": message["open"]})
        else:
            tell({"at": audience.wait(message["await"].encode())})


def tell(answer: dict[str, object]) -> None:
    """One line."""
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
