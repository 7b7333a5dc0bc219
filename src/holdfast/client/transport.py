"""HTTP/1.1 over a socket, as much as a client on loopback needs.

One request a connection. `http.client` would do the same, but importing it costs twice the start of
the interpreter. Not here: what the responses mean (`http.py`).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import BufferedReader
from select import select

import msgspec

LINE_LIMIT = 65_536
SILENT_SECONDS = 1.0


class ProtocolError(ConnectionError):
    """The connection ended in the middle of an answer, or what came is not HTTP."""


class Request(msgspec.Struct, frozen=True):
    """What is asked."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


class Response:
    """The head of a response; the body is read by `body` or piece by piece by `lines`."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self.status = _status(_line(stream))
        self.headers: dict[str, str] = {}
        while line := _line(stream):
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()

    def body(self) -> bytes:
        """All of it; less than announced is an error."""
        return b"".join(self._pieces())

    def lines(self) -> Iterator[bytes]:
        """Line by line, as it comes."""
        rest = b""
        for piece in self._pieces():
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
        if rest:
            yield rest

    def _pieces(self) -> Iterator[bytes]:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            yield from _chunks(self._stream)
        elif "content-length" in self.headers:
            yield from _exactly(self._stream, _number(self.headers["content-length"], 10))
        else:
            yield self._stream.read()


class ClientConnection:
    """One request and its answer; a context manager, because an answer may be followed for long."""

    def __init__(self, host: str, port: int, *, timeout: float) -> None:
        self._host = f"{host}:{port}"
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect((host, port))
        except OSError:
            self._socket.close()
            raise
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> ClientConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def send(self, request: Request, *, silent: Callable[[], None] | None = None) -> Response:
        """Send the request and read the head of the answer; `silent` is called while there is none for a second."""
        headers = {"Host": self._host, "Connection": "close", **request.headers}
        if request.body or request.method not in ("GET", "DELETE"):
            headers["Content-Length"] = str(len(request.body))
        head = f"{request.method} {request.target} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
        with suppress(BrokenPipeError, ConnectionResetError):  # refused while we speak: the answer says why
            self._socket.sendall(head.encode("ascii") + request.body)
        if silent is not None:
            while not select([self._socket], (), (), SILENT_SECONDS)[0]:
                silent()
        return Response(self._stream)


def _line(stream: BufferedReader) -> str:
    line = stream.readline(LINE_LIMIT)
    if not line.endswith(b"\n"):
        raise ProtocolError("the connection was cut in the middle of an answer")
    return line.decode("latin-1").rstrip("\r\n")


def _status(line: str) -> int:
    parts = line.split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdecimal():
        raise ProtocolError("the server there does not answer in HTTP")
    return int(parts[1])


def _number(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise ProtocolError("the server there does not answer in HTTP") from None


def _exactly(stream: BufferedReader, length: int) -> Iterator[bytes]:
    """Exactly `length` bytes, passed on as they arrive: what arrived before a cut is not lost."""
    while length > 0:
        piece = stream.read1(length)
        if not piece:
            raise ProtocolError("the connection was cut in the middle of an answer")
        length -= len(piece)
        yield piece


def _chunks(stream: BufferedReader) -> Iterator[bytes]:
    while True:
        length = _number(_line(stream).partition(";")[0], 16)
        if length == 0:
            while _line(stream):
                pass
            return
        yield from _exactly(stream, length)
        _line(stream)
