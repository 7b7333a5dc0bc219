"""A client that follows a session over a bare socket, as any program could: lines of an event stream."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from types import TracebackType
from typing import Any, Self

from tests.e2e.gateway import GatewayProcess
from tests.e2e.wire import connect, head
from tests.eventually import PATIENCE

Json = dict[str, Any]
AGAIN_SECONDS = 0.02


class Listener:
    """Comes back with its cursor whenever it is cut. Writes down what came; it sorts and repairs nothing."""

    def __init__(self, gateway: GatewayProcess, session: str) -> None:
        self._gateway = gateway
        self._path = f"/v1/sessions/{session}/events"
        self._left = threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.records: list[Json] = []
        self.spoken = ""
        """The answer in the making, put together from its pieces."""
        self.connections = 0
        self.wrong: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)

    def _follow(self) -> None:
        while not self._left.is_set():
            with contextlib.suppress(OSError, KeyError):  # KeyError: nobody has written an address
                self._connection()
            self._left.wait(AGAIN_SECONDS)

    def _connection(self) -> None:
        after = len(self.records)
        headers = [
            ("Host", f"127.0.0.1:{self._gateway.port}"),
            ("Authorization", f"Bearer {self._gateway.token}"),
            ("Accept", "text/event-stream"),
        ]
        with connect(self._gateway.port) as self._socket:
            self._socket.sendall(head("GET", f"{self._path}?after={after}", headers))
            with self._socket.makefile("rb") as stream:
                if b" 200 " not in stream.readline():
                    return  # a gateway that starts or ends may send it away
                self.connections += 1
                kind = b""
                for line in stream:
                    name, _, value = line.partition(b":")
                    if name == b"event":
                        kind = value.strip()
                    elif name == b"data":
                        self._came(kind, json.loads(value))
                        kind = b""

    def _came(self, kind: bytes, data: Json) -> None:
        if kind == b"delta":
            if data["offset"] > len(self.spoken):
                self.wrong.append(f"a gap before {data}, after {self.spoken!r}")
            self.spoken = self.spoken[: data["offset"]] + data["text"]
        elif not kind:
            self.records.append(data)
            event = data["event"]
            if event["kind"] == "ModelResponded" and not event["text"].startswith(self.spoken):
                self.wrong.append(f"{self.spoken!r} was spoken, {event['text']!r} was meant")
            if event["kind"] in ("ModelRequested", "ModelResponded", "ModelInterrupted"):
                self.spoken = ""
