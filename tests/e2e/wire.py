"""HTTP as bytes, for what no polite client would send."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass, field

from tests.eventually import PATIENCE

Headers = list[tuple[str, str]]
UPGRADE: Headers = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    """0 when the connection was closed without an answer."""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def head(method: str, target: str, headers: Headers) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def exchange(port: int, request: bytes) -> Answer:
    """One request on a connection of its own."""
    with connect(port) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
        return read_answer(connection, bodiless=request.startswith(b"HEAD "))


def read_answer(connection: socket.socket, *, bodiless: bool = False) -> Answer:
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return Answer(0)
            data += piece
        top, _, body = data.partition(b"\r\n\r\n")
        status_line, *lines = top.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = 0 if bodiless else int(headers.get("content-length", "0"))
        while len(body) < length and (piece := connection.recv(65536)):
            body += piece
    except ConnectionResetError:
        return Answer(0)
    return Answer(int(status_line.split()[1]), headers, body)


def is_closed(connection: socket.socket, *, seconds: float = PATIENCE) -> bool:
    """Whether the other side closes it within that time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True
    return True
