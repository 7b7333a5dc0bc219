"""A bad line to a real gateway: loses answers, or cuts a stream after so many bytes."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.gateway import GatewayProcess


class Proxy:
    """Stands between; `home` is a home that points to it instead of to the gateway."""

    def __init__(
        self, gateway: GatewayProcess, *, drop_answers: int = 0, cut_after: random.Random | None = None
    ) -> None:
        self._target = gateway.port
        self._drop_answers = drop_answers
        self._cut_after = cut_after
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port = int(self._listener.getsockname()[1])
        self.posts = self.connections = 0
        self.home = self._make_home(gateway)

    def _make_home(self, gateway: GatewayProcess) -> Path:
        home = gateway.home.with_name(gateway.home.name + "-behind-proxy")
        (home / "run").mkdir(mode=0o700, parents=True)
        home.chmod(0o700)
        shutil.copy(gateway.home / "run" / "token", home / "run" / "token")
        address = gateway.address | {"url": f"http://127.0.0.1:{self._port}"}
        (home / "run" / "gateway.json").write_text(json.dumps(address))
        return home

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target)) as server:
            request = b""
            while b"\r\n\r\n" not in request:
                request += client.recv(65_536)
            self.connections += 1
            is_post = request.startswith(b"POST")
            self.posts += is_post
            server.sendall(request.replace(b":%d\r\n" % self._port, b":%d\r\n" % self._target))
            if is_post and self._drop_answers > 0:
                self._drop_answers -= 1
                server.recv(65_536)
                return
            self._pass_on(server, client)

    def _pass_on(self, server: socket.socket, client: socket.socket) -> None:
        left = self._cut_after.randrange(300, 4_000) if self._cut_after is not None else 2**40
        while left > 0 and (piece := server.recv(65_536)):
            client.sendall(piece[:left])
            left -= len(piece)
